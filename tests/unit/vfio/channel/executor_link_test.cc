// SPDX-License-Identifier: Apache-2.0
// What an executor is sent over its link, and how it is ended.
#include "vfio/channel/executor_link.h"

#include <event2/event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tests/unit/vfio/channel/channel_rig.h"

namespace vgpud::vfio {
namespace {

class ExecutorLinkTest : public ChannelRig {
 protected:
  struct Received {
    exec_link::Area head;
    std::vector<exec_link::Piece> pieces;
    std::vector<ino_t> files;
  };
  static ino_t Inode(int fd) {
    struct stat st {};
    EXPECT_EQ(0, ::fstat(fd, &st));
    return st.st_ino;
  }
  static Received Parse(const Message& message) {
    Received received{*message.As<exec_link::Area>(), {}, {}};
    const size_t bytes = message.bytes.size() - sizeof received.head;
    received.pieces.resize(bytes / sizeof(exec_link::Piece));
    EXPECT_EQ(bytes, received.pieces.size() * sizeof(exec_link::Piece));
    std::memcpy(received.pieces.data(), message.bytes.data() + sizeof received.head, bytes);
    for (const ForeignFd& fd : message.fds) received.files.push_back(Inode(fd.get()));
    return received;
  }
  // The table of a VF whose executors are watched.
  void Watch() {
    table = std::make_unique<ChannelTable>(loop, ledgers,
                                           ChannelTable::Config{"rig", &slices.slot_page(), guard,
                                                                [this](const vf_link::Executor& message) {
                                                                  to_vgpud.push_back(message);
                                                                  return true;
                                                                },
                                                                [] {}, [] {}, true});
  }
  void Say(FakeExecutor& executor, exec_link::Kind kind, std::vector<int> fds = {}) {
    ASSERT_TRUE(SendStruct(executor.socket.get(), exec_link::Plain{kind}, fds));
    Pump();
  }
};

TEST_F(ExecutorLinkTest, EachPieceArrivesWithItsFileInMessagesThatFit) {
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  std::vector<SharedFd> files;
  for (int i = 0; i < 20; ++i) files.push_back(std::make_shared<const UniqueFd>(*MakeSealedMemfd("file", 4096)));
  Area area;
  // First all in one file, more than a message has room for; then each in another.
  for (uint64_t i = 0; i < 6000; ++i)
    area.pieces.push_back({files[i < 5900 ? 3 : i * 7 % 20], i << 12, 4096 * (i % 5 + 1), i % 3 == 0, {}});
  area.bytes = 12'345;
  const std::vector<FilePiece> sent = area.pieces;
  ASSERT_TRUE(table->AddBuffer(0, &owner, 77, std::move(area)));
  executor->Drain();
  Pump();
  executor->Drain();
  size_t next = 0, messages = 0;
  for (const Message& message : executor->messages) {
    if (*message.As<exec_link::Kind>() != exec_link::Kind::kMapArea) continue;
    const Received received = Parse(message);
    if (received.head.area != 77) continue;
    ++messages;
    EXPECT_EQ(12'345u, received.head.total_bytes);
    EXPECT_EQ(6000u, received.head.total_pieces);
    EXPECT_EQ(next, received.head.first_piece);
    ASSERT_EQ(received.head.count, received.pieces.size());
    EXPECT_LE(received.files.size(), 16u);
    EXPECT_LE(message.bytes.size(), 65536u);
    for (const exec_link::Piece& piece : received.pieces) {
      ASSERT_LT(piece.fd_index, received.files.size());
      ASSERT_EQ(Inode(sent[next].file->get()), received.files[piece.fd_index]) << next;
      ASSERT_EQ(sent[next].offset, piece.offset) << next;
      ASSERT_EQ(sent[next].bytes, piece.bytes) << next;
      ASSERT_EQ(sent[next].writable ? 1u : 0u, piece.writable) << next;
      ++next;
    }
  }
  EXPECT_EQ(6000u, next);
  // 2729 pieces fill a message; of the last hundred the first 16 files fit beside file 3.
  EXPECT_GE(messages, 3u);
  EXPECT_LE(messages, 12u);
  EXPECT_EQ(2729u, Parse(executor->messages[1]).head.count);
}

TEST_F(ExecutorLinkTest, AreasWaitUntilAnExecutorHasSaidWhetherItIsWatched) {
  Watch();
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
  const auto executor = SendExecutor();
  ASSERT_TRUE(table->AddBuffer(0, &owner, 1, Pieces(2)));
  ASSERT_TRUE(table->AddBuffer(0, &owner, 2, Pieces(3)));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 1));
  executor->Drain();
  EXPECT_EQ(1u, executor->messages[0].As<exec_link::Attach>()->watched);
  EXPECT_TRUE(executor->Areas(exec_link::Kind::kMapArea).empty());
  Say(*executor, exec_link::Kind::kWatched);
  const auto areas = executor->Areas(exec_link::Kind::kMapArea);
  ASSERT_EQ(2u, areas.size()) << "but for the one that is gone meanwhile";
  EXPECT_EQ(0u, areas[0].area);
  EXPECT_EQ(2u, areas[1].area);
  EXPECT_EQ(1u, executor->messages.back().fds.size()) << "it is not watched: it gets the files";
  ASSERT_TRUE(table->AddBuffer(0, &owner, 3, Pieces(1)));
  EXPECT_EQ(3u, executor->Areas(exec_link::Kind::kMapArea).size()) << "from now on at once";
  EXPECT_FALSE(Ended(*executor));
  Say(*executor, exec_link::Kind::kWatched);
  EXPECT_TRUE(Ended(*executor)) << "once";
}

TEST_F(ExecutorLinkTest, WhoIsNotAskedSaysNothingOfBeingWatched) {
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  Say(*executor, exec_link::Kind::kWatched);
  EXPECT_TRUE(Ended(*executor));
}

TEST_F(ExecutorLinkTest, AnExecutorHasTwoWatchesOrNone) {
  Watch();
  const UniqueFd event = *MakeEventFd();
  for (const size_t count : {1, 3}) {
    ASSERT_EQ(std::errc{}, Open(static_cast<uint32_t>(count)));
    const auto executor = SendExecutor();
    Say(*executor, exec_link::Kind::kWatched, std::vector<int>(count, event.get()));
    EXPECT_TRUE(Ended(*executor)) << count;
  }
}

TEST_F(ExecutorLinkTest, MessagesThatNobodyKnowsOrThatAreTooShortEndIt) {
  const auto ended = [this](std::vector<uint32_t> words) {
    EXPECT_EQ(std::errc{}, Open(5));
    const auto executor = SendExecutor();
    EXPECT_TRUE(SendMessage(executor->socket.get(), std::as_bytes(std::span{words})));
    Pump();
    const bool gone = Ended(*executor);
    executor->Die();
    Pump();
    (void)table->Close(5, &owner);
    Pump();
    return gone;
  };
  for (const uint32_t kind : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 15u, 23u, 99u})
    EXPECT_TRUE(ended({kind, 0, 0, 0, 0, 0, 0, 0, 0, 0})) << kind;
  const std::pair<uint32_t, size_t> words[] = {{16, 8}, {17, 6}, {18, 8}, {20, 6}, {21, 2}, {22, 4}};
  for (const auto& [kind, whole] : words) {
    std::vector<uint32_t> message(whole);
    message[0] = kind;
    EXPECT_FALSE(ended(message)) << kind;
    message.pop_back();
    EXPECT_TRUE(ended(message)) << kind;
  }
}

TEST_F(ExecutorLinkTest, MemoryIsAnsweredFromTheLedgerThatItIsAskedOf) {
  ledgers.vram.SetQuota(100);
  ledgers.host.SetQuota(10);
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  usage_changes = 0;
  const auto ask = [&](exec_link::Kind kind, int64_t delta) {
    EXPECT_TRUE(SendStruct(executor->socket.get(), exec_link::Vram{kind, 7, delta, 7}));
    Pump();
    executor->Drain();
    return *executor->messages.back().As<exec_link::Vram>();
  };
  struct {
    exec_link::Kind asked, answered;
    int64_t delta;
    uint32_t ok;
    uint64_t used;
    int changes;
  } const cases[] = {
      {exec_link::Kind::kVramRequest, exec_link::Kind::kVramReply, 60, 1, 60, 1},
      {exec_link::Kind::kHostRequest, exec_link::Kind::kHostReply, 11, 0, 0, 1},
      {exec_link::Kind::kHostRequest, exec_link::Kind::kHostReply, 9, 1, 9, 2},
      {exec_link::Kind::kVramRequest, exec_link::Kind::kVramReply, 41, 0, 60, 2},
      {exec_link::Kind::kVramRequest, exec_link::Kind::kVramReply, 0, 1, 60, 2},
      {exec_link::Kind::kVramRequest, exec_link::Kind::kVramReply, -1, 1, 59, 3},
  };
  for (const auto& c : cases) {
    const exec_link::Vram answer = ask(c.asked, c.delta);
    EXPECT_EQ(c.answered, answer.kind);
    EXPECT_EQ(c.ok, answer.ok) << c.delta;
    EXPECT_EQ(c.delta, answer.delta_bytes);
    EXPECT_EQ(c.used, answer.vf_used) << c.delta;
    EXPECT_EQ(c.changes, usage_changes) << c.delta;
  }
  executor->Die();
  Pump();
  EXPECT_EQ(0u, ledgers.vram.used());
  EXPECT_EQ(0u, ledgers.host.used());
}

TEST_F(ExecutorLinkTest, WhoDoesNotGoWhenItIsToldToIsKilled) {
  ASSERT_EQ(std::errc{}, Open(0));
  const auto executor = SendExecutor();
  ASSERT_TRUE(table->Close(0, &owner));
  EXPECT_EQ(vf_link::Kind::kChannelClosed, to_vgpud.back().kind);
  while (to_vgpud.back().kind != vf_link::Kind::kKillExecutor) event_base_loop(loop.base(), EVLOOP_ONCE);
  EXPECT_EQ(1u, to_vgpud.back().generation);
  EXPECT_EQ(VGPU_CHANNEL_CLOSING, table->State(0));
  executor->Die();
  Pump();
  EXPECT_EQ(VGPU_CHANNEL_FREE, table->State(0));
}

TEST(KillProcessTest, KillsWhoLivesAndIsContentWithWhoDoesNot) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  const UniqueFd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  ASSERT_TRUE(pidfd);
  EXPECT_TRUE(KillProcess(pidfd));
  int status = 0;
  ASSERT_EQ(pid, ::waitpid(pid, &status, 0));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(SIGKILL, WTERMSIG(status));
  EXPECT_TRUE(KillProcess(pidfd)) << "it is dead already";
  EXPECT_FALSE(KillProcess(*MakeEventFd())) << "no process at all";
}

}  // namespace
}  // namespace vgpud::vfio
