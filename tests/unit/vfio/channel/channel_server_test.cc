// SPDX-License-Identifier: Apache-2.0
// The channel socket, as a client of the host speaks to it (vgpu_channel_sock.h).
#include "vfio/channel/channel_server.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstring>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"
#include "tests/scratch_dir.h"
#include "tests/unit/vfio/channel/channel_rig.h"

namespace vgpud::vfio {
namespace {

class ChannelServerTest : public ChannelRig {
 protected:
  struct Answer {
    vgpu_sock_reply reply{};
    std::vector<ForeignFd> fds;
  };
  void SetUp() override {
    figures.name = std::string(70, 'n');
    figures.slice_us = 2'000;
    figures.weight = 300;
    for (uint8_t i = 0; i < 16; ++i) figures.uuid[i] = static_cast<uint8_t>(i + 1);
    Start();
  }
  void TearDown() override { server_.reset(); }
  void Start() {
    server_.reset();
    server_ = std::make_unique<ChannelServer>(loop, *ListenUnix(path_, SOCK_SEQPACKET), *table, figures, guard);
  }
  UniqueFd Connect() {
    UniqueFd client = *ConnectUnix(path_, SOCK_SEQPACKET);
    EXPECT_EQ(0, ::fcntl(client.get(), F_SETFL, O_NONBLOCK));
    Pump();
    return client;
  }
  // The next answer; waits for what other threads have to do first.
  Answer Await(const UniqueFd& client) {
    for (;;) {
      auto message = ReceiveMessage(client.get());
      if (message) return {*message->As<vgpu_sock_reply>(), std::move(message->fds)};
      if (message.error().code != std::errc::resource_unavailable_try_again) {
        ADD_FAILURE() << "the connection has ended";
        return {};
      }
      event_base_loop(loop.base(), EVLOOP_ONCE);
    }
  }
  Answer Call(const UniqueFd& client, uint32_t op, uint64_t bytes = 0, uint32_t buffer = 0, uint32_t pid = 4711,
              std::array<uint32_t, 3> mbz = {}) {
    const uint64_t offset = mbz[1] | uint64_t{mbz[2]} << 32;
    EXPECT_TRUE(SendStruct(client.get(), vgpu_sock_request{op, buffer, bytes, pid, mbz[0], offset}));
    return Await(client);
  }
  int Status(const UniqueFd& client, uint32_t op, uint64_t bytes = 0, uint32_t buffer = 0) {
    const Answer answer = Call(client, op, bytes, buffer);
    EXPECT_EQ(op, answer.reply.op);
    if (answer.reply.status != 0) {
      EXPECT_EQ(buffer, answer.reply.buffer);
      EXPECT_TRUE(answer.fds.empty());
    }
    EXPECT_EQ(0u, answer.reply.mbz);
    return answer.reply.status;
  }
  bool Gone(const UniqueFd& client) {
    Pump();
    char byte = 0;
    return ::recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
  }
  static uint64_t SizeOf(const ForeignFd& fd) {
    struct stat st {};
    EXPECT_EQ(0, ::fstat(fd.get(), &st));
    return st.st_size;
  }

  const ScratchDir scratch_;
  const std::string path_ = scratch_.path() + "/s";
  std::unique_ptr<ChannelServer> server_;
};

TEST_F(ChannelServerTest, OpenAnswersWithTheVfAndTheChannelsMemory) {
  const UniqueFd client = Connect();
  const Answer answer = Call(client, VGPU_SOCK_OPEN, 1);
  EXPECT_EQ(uint32_t{VGPU_SOCK_OPEN}, answer.reply.op);
  EXPECT_EQ(0, answer.reply.status);
  EXPECT_EQ(0u, answer.reply.buffer);
  EXPECT_EQ(0u, answer.reply.mbz);
  const vgpu_ioc_info& info = answer.reply.info;
  EXPECT_EQ(1u, info.abi_version);
  EXPECT_EQ(63u, info.channel);
  EXPECT_EQ(0x231000u, info.channel_bytes);
  EXPECT_EQ(1u << 30, info.vram_bytes);
  EXPECT_EQ(0xbf0003u, info.features) << "buffers, textures, queries of streams, clusters, shared buffers, words, "
                                         "names of kernels, mapped memory, gates "
                                         "of slots";
  EXPECT_EQ(2'000u, info.slice_us);
  EXPECT_EQ(300u, info.weight);
  EXPECT_EQ(0, std::memcmp(figures.uuid.data(), info.uuid, 16));
  EXPECT_EQ(std::string(63, 'n'), std::string(info.name, 63));
  EXPECT_EQ('\0', info.name[63]);
  ASSERT_EQ(3u, answer.fds.size());
  EXPECT_EQ(0x231000u, SizeOf(answer.fds[0]));
  vgpu_channel_header header{};
  ASSERT_EQ(ssize_t{sizeof header}, ::pread(answer.fds[0].get(), &header, sizeof header, 0));
  EXPECT_EQ(VGPU_MAGIC, header.magic);
  EXPECT_EQ(1u, header.abi_version);
  EXPECT_EQ(0x200000u, header.payload_bytes);
  EXPECT_EQ(4711u, header.unused_pid);
  EXPECT_EQ(4711u, to_vgpud.back().client_pid);

  const auto executor = SendExecutor();
  const auto areas = executor->Areas(exec_link::Kind::kMapArea);
  ASSERT_EQ(1u, areas.size());
  EXPECT_EQ(0x231000u, areas[0].total_bytes);
  exec_link::Piece piece{};
  std::memcpy(&piece, executor->messages[1].bytes.data() + sizeof(exec_link::Area), sizeof piece);
  EXPECT_EQ(0u, piece.offset);
  EXPECT_EQ(1u, piece.writable);
  EXPECT_EQ(0x231000u, piece.bytes);
  SendSignal(answer.fds[1].get());
  EXPECT_EQ(Signals::kSome, TakeSignals(executor->messages[0].fds[0].get())) << "kick";
  SendSignal(executor->messages[0].fds[1].get());
  EXPECT_EQ(Signals::kSome, TakeSignals(answer.fds[2].get())) << "call";
}

TEST_F(ChannelServerTest, RequestsAreAnsweredInTheOrderOfTheProtocol) {
  const UniqueFd client = Connect();
  for (const uint32_t op : {0u, 5u, ~0u}) EXPECT_EQ(-ENOSYS, Status(client, op));
  EXPECT_EQ(-EINVAL, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096)) << "OPEN comes first";
  EXPECT_EQ(-EINVAL, Status(client, VGPU_SOCK_BUFFER_FREE));
  for (const uint64_t version : {0, 2}) EXPECT_EQ(-EPROTONOSUPPORT, Status(client, VGPU_SOCK_OPEN, version));
  for (size_t i = 0; i < 3; ++i)
    for (const uint32_t value : {1u, 0x80000000u}) {
      std::array<uint32_t, 3> mbz{};
      mbz[i] = value;
      EXPECT_EQ(-EINVAL, Call(client, VGPU_SOCK_OPEN, 1, 0, 0, mbz).reply.status) << i;
    }
  EXPECT_EQ(0u, table->open_channels());
  EXPECT_EQ(0, Status(client, VGPU_SOCK_OPEN, 1));
  EXPECT_EQ(-EINVAL, Status(client, VGPU_SOCK_OPEN, 1)) << "once";
  EXPECT_EQ(1u, table->open_channels());
}

TEST_F(ChannelServerTest, StatusIsToldWithAndWithoutAChannel) {
  figures.gpu_percent = 42;
  const UniqueFd client = Connect();
  const auto ask = [&](uint64_t bytes, uint32_t buffer) {
    EXPECT_TRUE(SendStruct(client.get(), vgpu_sock_request{VGPU_SOCK_STATUS, buffer, bytes, 4711, 0, 0}));
    Pump();
    return ReceiveMessage(client.get());
  };
  const auto told = ask(0, 0);
  ASSERT_TRUE(told && told->bytes.size() == sizeof(vgpu_sock_status));
  const auto status = *told->As<vgpu_sock_status>();
  EXPECT_EQ(VGPU_SOCK_STATUS, status.op);
  EXPECT_EQ(0, status.status);
  EXPECT_EQ(42u, status.vf.gpu_percent);
  EXPECT_EQ(0u, status.vf.channel[0].id);
  EXPECT_TRUE(told->fds.empty());
  EXPECT_TRUE(to_vgpud.empty()) << "no executor was asked for";
  for (const auto& [bytes, buffer] : {std::pair{1u, 0u}, {0u, 1u}}) {
    const auto refused = ask(bytes, buffer);
    ASSERT_TRUE(refused && refused->bytes.size() == sizeof(vgpu_sock_reply));
    EXPECT_EQ(-EINVAL, refused->As<vgpu_sock_reply>()->status);
  }
  EXPECT_EQ(0, Call(client, VGPU_SOCK_OPEN, 1).reply.status);
  const auto after = ask(0, 0);
  ASSERT_TRUE(after && after->bytes.size() == sizeof(vgpu_sock_status));
  EXPECT_EQ(1u, after->As<vgpu_sock_status>()->vf.channel[0].id);
  EXPECT_EQ(4711u, after->As<vgpu_sock_status>()->vf.channel[0].pid);
}

TEST_F(ChannelServerTest, BuffersAreWholePagesAndHaveTheirNumbersInOrder) {
  const UniqueFd client = Connect();
  ledgers.host.SetQuota(uint64_t{64} << 30);
  ASSERT_EQ(0, Status(client, VGPU_SOCK_OPEN, 1));
  const auto executor = SendExecutor();
  const uint64_t most = 68'719'476'736;  // 64 GiB
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{4097}, uint64_t{2048}, most + 4096,
                               most + 1, uint64_t{1} << 63, ~uint64_t{0}})
    EXPECT_EQ(-EINVAL, Status(client, VGPU_SOCK_BUFFER_ALLOC, bytes)) << bytes;
  const Answer whole = Call(client, VGPU_SOCK_BUFFER_ALLOC, most);
  EXPECT_EQ(0, whole.reply.status);
  EXPECT_EQ(1u, whole.reply.buffer);
  ASSERT_EQ(1u, whole.fds.size());
  EXPECT_EQ(most, SizeOf(whole.fds[0]));
  EXPECT_EQ(most, ledgers.host.used());
  EXPECT_EQ(-ENOMEM, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096));
  const auto areas = executor->Areas(exec_link::Kind::kMapArea);
  EXPECT_EQ(most, areas.back().total_bytes);
  exec_link::Piece piece{};
  std::memcpy(&piece, executor->messages.back().bytes.data() + sizeof(exec_link::Area), sizeof piece);
  EXPECT_EQ(0u, piece.offset);
  EXPECT_EQ(1u, piece.writable);
  EXPECT_EQ(most, piece.bytes);

  EXPECT_EQ(-ENOENT, Status(client, VGPU_SOCK_BUFFER_FREE, 0, 2));
  ASSERT_TRUE(SendStruct(client.get(), vgpu_sock_request{VGPU_SOCK_BUFFER_FREE, 1, 0, 0, 0, 0}));
  Pump();
  EXPECT_FALSE(ReceiveMessage(client.get())) << "the executor has it still";
  Unmapped(*executor, 1);
  const Answer freed = Await(client);
  EXPECT_EQ(uint32_t{VGPU_SOCK_BUFFER_FREE}, freed.reply.op);
  EXPECT_EQ(0, freed.reply.status);
  EXPECT_EQ(1u, freed.reply.buffer);
  EXPECT_EQ(0u, freed.reply.mbz);
  EXPECT_EQ(0u, ledgers.host.used()) << "and can be had again when the client hears of it";
  for (const uint32_t number : {2u, 3u, 4u}) {
    const Answer next = Call(client, VGPU_SOCK_BUFFER_ALLOC, 4096);
    EXPECT_EQ(0, next.reply.status);
    EXPECT_EQ(number, next.reply.buffer);
  }
}

TEST_F(ChannelServerTest, WhatAClientWroteIsGoneWithItsBuffer) {
  const UniqueFd client = Connect();
  ASSERT_EQ(0, Status(client, VGPU_SOCK_OPEN, 1));
  const Answer buffer = Call(client, VGPU_SOCK_BUFFER_ALLOC, 8192);
  ASSERT_EQ(1u, buffer.fds.size());
  const std::string text(8192, 'x');
  ASSERT_EQ(8192, ::pwrite(buffer.fds[0].get(), text.data(), 8192, 0));
  EXPECT_EQ(0, Status(client, VGPU_SOCK_BUFFER_FREE, 0, 1));
  struct stat st {};
  ASSERT_EQ(0, ::fstat(buffer.fds[0].get(), &st));
  EXPECT_EQ(8192, st.st_size);
  EXPECT_EQ(0, st.st_blocks) << "its memory is the host's again, whoever keeps the descriptor";
}

// A memfd of so many pages.
UniqueFd Memory(size_t pages) {
  UniqueFd file{::memfd_create("client", MFD_CLOEXEC)};
  EXPECT_EQ(0, ::ftruncate(file.get(), static_cast<off_t>(pages * 4096)));
  return file;
}

class ClientMemoryTest : public ChannelServerTest {
 protected:
  void SetUp() override {
    figures.client_memory = true;
    ChannelServerTest::SetUp();
    client_ = Connect();
    const Answer opened = Call(client_, VGPU_SOCK_OPEN, 1);
    EXPECT_NE(0u, opened.reply.info.features & VGPU_FEATURE_CLIENT_MEMORY);
  }
  vgpu_sock_reply Import(int fd, uint64_t bytes, uint64_t offset = 0) {
    const vgpu_sock_request request{VGPU_SOCK_BUFFER_IMPORT, 0, bytes, 0, 0, offset};
    const int fds[] = {fd};
    EXPECT_TRUE(SendStruct(client_.get(), request, fds));
    return Await(client_).reply;
  }
  UniqueFd client_;
};

TEST_F(ClientMemoryTest, AFileOfTheClientsIsABuffer) {
  const auto executor = SendExecutor();
  const UniqueFd mine = Memory(4);
  const vgpu_sock_reply reply = Import(mine.get(), 8192, 4096);
  EXPECT_EQ(0, reply.status);
  EXPECT_EQ(1u, reply.buffer);
  EXPECT_EQ(8192u, ledgers.host.used());
  EXPECT_EQ(8192u, executor->Areas(exec_link::Kind::kMapArea).back().total_bytes);
  exec_link::Piece piece{};
  std::memcpy(&piece, executor->messages.back().bytes.data() + sizeof(exec_link::Area), sizeof piece);
  EXPECT_EQ(4096u, piece.offset);
  EXPECT_EQ(1u, piece.writable);
  EXPECT_EQ(8192u, piece.bytes);
  EXPECT_EQ(0, Call(client_, VGPU_SOCK_BUFFER_ALLOC, 4096).reply.status);
  ASSERT_TRUE(SendStruct(client_.get(), vgpu_sock_request{VGPU_SOCK_BUFFER_FREE, 1, 0, 0, 0, 0}));
  Pump();
  Unmapped(*executor, 1);
  EXPECT_EQ(0, Await(client_).reply.status);
  EXPECT_EQ(4096u, ledgers.host.used()) << "that of the other buffer";
}

TEST_F(ClientMemoryTest, WhatIsInItStaysTheClients) {
  const UniqueFd mine = Memory(1);
  ASSERT_EQ(4, ::pwrite(mine.get(), "text", 4, 0));
  ASSERT_EQ(0, Import(mine.get(), 4096).status);
  EXPECT_EQ(0, Status(client_, VGPU_SOCK_BUFFER_FREE, 0, 1));
  char text[5] = {};
  ASSERT_EQ(4, ::pread(mine.get(), text, 4, 0));
  EXPECT_STREQ("text", text);
}

// Mapping takes whole pages, whatever was asked for.
TEST_F(ClientMemoryTest, OfLargePagesOnlyWholeOnesAreTaken) {
  constexpr uint64_t kLarge = 2 << 20;
  const UniqueFd huge{::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | (21u << 26))};
  if (!huge) GTEST_SKIP() << "this kernel has no huge pages";
  ASSERT_EQ(0, ::ftruncate(huge.get(), 2 * kLarge));
  EXPECT_EQ(-EINVAL, Import(huge.get(), 4096).status);
  EXPECT_EQ(-EINVAL, Import(huge.get(), kLarge, 4096).status);
  EXPECT_EQ(0u, ledgers.host.used());
  EXPECT_EQ(0, Import(huge.get(), kLarge, kLarge).status);
}

TEST_F(ClientMemoryTest, OnlyMemoryThatIsThereIsTaken) {
  const UniqueFd mine = Memory(2), event = *MakeEventFd();
  const UniqueFd elsewhere{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const UniqueFd read_only{::open(("/proc/self/fd/" + std::to_string(mine.get())).c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_EQ(-EINVAL, Import(event.get(), 4096).status);
  EXPECT_EQ(-EINVAL, Import(elsewhere.get(), 4096).status) << "a file of another file system";
  EXPECT_EQ(-EACCES, Import(read_only.get(), 4096).status);
  EXPECT_EQ(-EINVAL, Import(mine.get(), 3 * 4096).status) << "longer than the file";
  EXPECT_EQ(-EINVAL, Import(mine.get(), 4096, 8192).status);
  EXPECT_EQ(-EINVAL, Import(mine.get(), 4096, ~uint64_t{4095}).status);
  EXPECT_EQ(-EINVAL, Import(mine.get(), 4096, 1).status);
  EXPECT_EQ(-EINVAL, Import(mine.get(), 0).status);
  EXPECT_EQ(-EINVAL, Import(mine.get(), 100).status);
  EXPECT_EQ(0u, ledgers.host.used());
  EXPECT_EQ(0, Import(mine.get(), 8192).status);
}

TEST_F(ClientMemoryTest, OfItsLastPageAFileMayHaveAPart) {
  const UniqueFd mine = Memory(1);
  ASSERT_EQ(0, ::ftruncate(mine.get(), 4096 + 4));
  EXPECT_EQ(-EINVAL, Import(mine.get(), 3 * 4096).status);
  EXPECT_EQ(-EINVAL, Import(mine.get(), 4096, 8192).status);
  EXPECT_EQ(0, Import(mine.get(), 8192).status);
  EXPECT_EQ(0, Import(mine.get(), 4096, 4096).status);
  EXPECT_EQ(3u * 4096, ledgers.host.used()) << "whole pages count";
  ASSERT_EQ(0, ::ftruncate(mine.get(), 4096));
  EXPECT_EQ(-EINVAL, Import(mine.get(), 8192).status);
}

TEST_F(ClientMemoryTest, ItCountsAsHostMemory) {
  ledgers.host.SetQuota(8192);
  const UniqueFd mine = Memory(3);
  EXPECT_EQ(0, Import(mine.get(), 4096).status);
  EXPECT_EQ(-ENOMEM, Import(mine.get(), 8192).status);
  EXPECT_EQ(4096u, ledgers.host.used());
}

TEST_F(ClientMemoryTest, ARequestWithoutItsFileOrWithMoreEndsTheConnection) {
  ASSERT_TRUE(SendStruct(client_.get(), vgpu_sock_request{VGPU_SOCK_BUFFER_IMPORT, 0, 4096, 0, 0, 0}));
  EXPECT_TRUE(Gone(client_));
}

TEST_F(ChannelServerTest, AFileWhereNobodyWantsOneEndsTheConnection) {
  const UniqueFd client = Connect(), mine = Memory(1);
  ASSERT_EQ(0, Status(client, VGPU_SOCK_OPEN, 1));
  const int fds[] = {mine.get()};
  ASSERT_TRUE(SendStruct(client.get(), vgpu_sock_request{VGPU_SOCK_BUFFER_IMPORT, 0, 4096, 0, 0, 0}, fds));
  EXPECT_TRUE(Gone(client));
}

TEST_F(ChannelServerTest, HalfOfTheDescriptorsAreForBuffers) {
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &before));
  const rlimit few{512, before.rlim_max};
  ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &few));
  Start();
  ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &before));
  const UniqueFd client = Connect();
  ASSERT_EQ(0, Status(client, VGPU_SOCK_OPEN, 1));
  for (int i = 0; i < 256; ++i) ASSERT_EQ(0, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096)) << i;
  EXPECT_EQ(-ENOSPC, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096));
  EXPECT_EQ(0, Status(client, VGPU_SOCK_BUFFER_FREE, 0, 17));
  EXPECT_EQ(0, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096));
  EXPECT_EQ(-ENOSPC, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096));
}

TEST_F(ChannelServerTest, WhatIsNoRequestEndsTheConnection) {
  const vgpu_sock_request open{VGPU_SOCK_OPEN, 0, 1, 0, 0, 0};
  const std::string whole(reinterpret_cast<const char*>(&open), sizeof open);
  const UniqueFd event = *MakeEventFd();
  for (const std::string& text : {whole.substr(0, 31), whole + '\0', std::string("?")}) {
    const UniqueFd client = Connect();
    ASSERT_TRUE(SendMessage(client.get(), std::as_bytes(std::span{text})));
    EXPECT_TRUE(Gone(client)) << text.size();
  }
  const UniqueFd client = Connect();
  const int fds[] = {event.get()};
  ASSERT_TRUE(SendMessage(client.get(), std::as_bytes(std::span{whole}), fds));
  EXPECT_TRUE(Gone(client)) << "with a descriptor";
  EXPECT_EQ(0u, table->open_channels());
}

TEST_F(ChannelServerTest, AChannelEndsWithItsConnectionAndTheOtherWayRound) {
  UniqueFd first = Connect();
  const UniqueFd second = Connect();
  ASSERT_EQ(0, Status(first, VGPU_SOCK_OPEN, 1));
  ASSERT_EQ(0, Status(second, VGPU_SOCK_OPEN, 1));
  EXPECT_EQ(2u, table->open_channels());
  const auto executor = SendExecutor();  // of the second
  first.Reset();
  Pump();
  EXPECT_EQ(1u, table->open_channels());
  EXPECT_EQ(VGPU_CHANNEL_OPEN, table->State(62));
  executor->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_LOST, table->State(62));
  EXPECT_FALSE(Gone(second)) << "it looks at the channel";
  table->CloseAll();
  EXPECT_TRUE(Gone(second));
  EXPECT_EQ(0u, table->open_channels());
}

// A process that has `client`, as this one has. It opens a channel on it and stays, or ends at once.
pid_t OpenInAnotherProcess(const UniqueFd& client, bool stays) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const bool sent = static_cast<bool>(SendStruct(client.get(), vgpu_sock_request{VGPU_SOCK_OPEN, 0, 1, 0, 0, 0}));
  while (sent && stays) ::pause();
  ::_exit(0);
}

void End(pid_t pid) {
  ::kill(pid, SIGKILL);
  int status = 0;
  EXPECT_EQ(pid, ::waitpid(pid, &status, 0));
}

TEST_F(ChannelServerTest, AChannelEndsWithItsProcessWhoeverElseHasTheConnection) {
  const UniqueFd client = Connect();
  if (!AskForSenders(client.get())) GTEST_SKIP() << "this kernel does not say who sends";
  const pid_t pid = OpenInAnotherProcess(client, true);
  EXPECT_EQ(0, Await(client).reply.status);
  ASSERT_EQ(0, Status(client, VGPU_SOCK_BUFFER_ALLOC, 4096));
  EXPECT_EQ(1u, table->open_channels());
  End(pid);
  while (table->open_channels() != 0) event_base_loop(loop.base(), EVLOOP_ONCE);
  EXPECT_TRUE(Gone(client));
  // Another thread empties the buffer.
  while (ledgers.host.used() != 0) event_base_loop(loop.base(), EVLOOP_ONCE);
}

TEST_F(ChannelServerTest, AProcessThatHasEndedGetsNoChannel) {
  const UniqueFd client = Connect();
  if (!AskForSenders(client.get())) GTEST_SKIP() << "this kernel does not say who sends";
  const pid_t pid = OpenInAnotherProcess(client, false);
  int status = 0;
  ASSERT_EQ(pid, ::waitpid(pid, &status, 0));
  Pump();
  EXPECT_EQ(0u, table->open_channels());
}

TEST_F(ChannelServerTest, ConnectionsAndRequestsBeyondTheBudgetAreServedLater) {
  guard.Count(GuardedEvent::kCommand, 20'001);
  EXPECT_EQ(Ns{0}, guard.Wait(EventGuard::kInput, Now())) << "from now on the time counts";
  const UniqueFd client = Connect();
  guard.Count(GuardedEvent::kCommand, 21'000);  // 50 ms
  const uint64_t before = guard.count(GuardedEvent::kCommand);
  const UniqueFd other = Connect();
  EXPECT_EQ(before + 1, guard.count(GuardedEvent::kCommand)) << "a connection";
  ASSERT_TRUE(SendStruct(client.get(), vgpu_sock_request{VGPU_SOCK_OPEN, 0, 1, 0, 0, 0}));
  const UniqueFd late = Connect();
  EXPECT_EQ(0u, table->open_channels());
  EXPECT_EQ(before + 1, guard.count(GuardedEvent::kCommand)) << "nobody is read from";
  EXPECT_EQ(1u, guard.throttled(GuardedEvent::kCommand));
  EXPECT_EQ(0, Await(client).reply.status);
  while (guard.count(GuardedEvent::kCommand) < before + 3) event_base_loop(loop.base(), EVLOOP_ONCE);
  EXPECT_EQ(0, Status(late, VGPU_SOCK_OPEN, 1));
}

TEST_F(ChannelServerTest, OneProcessHasItsShareOfTheConnections) {
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(Connect());
  EXPECT_FALSE(Gone(clients.back()));
  const UniqueFd refused = Connect();
  EXPECT_TRUE(Gone(refused));
  clients.pop_back();
  Pump();
  const UniqueFd next = Connect();
  EXPECT_FALSE(Gone(next));
  EXPECT_EQ(0, Status(next, VGPU_SOCK_OPEN, 1));
}

}  // namespace
}  // namespace vgpud::vfio
