// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/mapping.h"
#include "base/message.h"
#include "tests/scratch_dir.h"

namespace vgpud {
namespace {

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFdTest, ClosesOnceAndMoves) {
  UniqueFd a = *MakeEventFd();
  const int raw = a.get();
  UniqueFd b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(raw, b.get());
  b.Reset();
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFdTest, EveryFdIsCloseOnExec) {
  const UniqueFd event = *MakeEventFd();
  const UniqueFd copy = *Dup(event.get());
  const UniqueFd memory = *MakeSealedMemfd("t", 4096);
  for (const int fd : {event.get(), copy.get(), memory.get()}) EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(MemfdTest, SizeIsSealed) {
  const UniqueFd fd = *MakeSealedMemfd("t", 8192);
  EXPECT_NE(0, ::ftruncate(fd.get(), 4096));
  EXPECT_NE(0, ::ftruncate(fd.get(), 16384));
  struct stat st {};
  ASSERT_EQ(0, ::fstat(fd.get(), &st));
  EXPECT_EQ(8192, st.st_size);
}

struct ForeignFd {
  const char* name;
  UniqueFd (*make)();
  bool taken;
};
UniqueFd Memfd(off_t bytes, int seals) {
  UniqueFd fd{::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  EXPECT_EQ(0, ::ftruncate(fd.get(), bytes));
  EXPECT_EQ(0, seals != 0 ? ::fcntl(fd.get(), F_ADD_SEALS, seals) : 0);
  return fd;
}
UniqueFd PlainFile() {
  char name[] = "/tmp/vgpud-base-XXXXXX";
  UniqueFd fd{::mkstemp(name)};
  ::unlink(name);
  EXPECT_EQ(0, ::ftruncate(fd.get(), 8192));
  return fd;
}
constexpr ForeignFd kForeignFds[] = {
    {"a sealed memfd", [] { return *MakeSealedMemfd("t", 8192); }, true},
    {"a file: F_GET_SEALS fails there", &PlainFile, false},
    {"an eventfd", [] { return *MakeEventFd(); }, false},
    {"a memfd without seals", [] { return Memfd(8192, 0); }, false},
    {"one that may grow", [] { return Memfd(8192, F_SEAL_SHRINK | F_SEAL_SEAL); }, false},
    {"one that may shrink", [] { return Memfd(8192, F_SEAL_GROW | F_SEAL_SEAL); }, false},
    {"one that takes more seals", [] { return Memfd(8192, F_SEAL_GROW | F_SEAL_SHRINK); }, false},
    {"one of another size", [] { return *MakeSealedMemfd("t", 4096); }, false},
};

TEST(MemfdTest, OnlySealedMemoryOfTheRightSizeIsTakenFromAnotherProcess) {
  for (const ForeignFd& foreign : kForeignFds) {
    const UniqueFd fd = foreign.make();
    EXPECT_EQ(foreign.taken, CheckSealedMemfd(fd.get(), 8192, "page").has_value()) << foreign.name;
  }
  EXPECT_FALSE(CheckSealedMemfd(-1, 8192, "page"));
}

TEST(PipeTest, AFullOneTakesNothingAndDoesNotBlock) {
  const Pipe pipe = *MakePipe();
  const std::string page(4096, 'x');
  int pages = 0;
  while (::write(pipe.write.get(), page.data(), page.size()) > 0) ++pages;
  EXPECT_EQ(EAGAIN, errno);
  EXPECT_GT(pages, 0);
}

TEST(EventFdTest, SignalThenDrain) {
  const UniqueFd fd = *MakeEventFd();
  EXPECT_FALSE(DrainEventFd(fd.get()));
  SignalEventFd(fd.get());
  SignalEventFd(fd.get());
  EXPECT_TRUE(DrainEventFd(fd.get()));
  EXPECT_FALSE(DrainEventFd(fd.get()));
}

TEST(UnixSocketTest, ListensPrivatelyAndReplacesAnOldSocket) {
  const ScratchDir dir;
  const std::string path = dir.path() + "/s.sock";
  { const UniqueFd first = *ListenUnix(path, SOCK_STREAM); }
  const auto second = ListenUnix(path, SOCK_STREAM);
  ASSERT_TRUE(second) << second.error().context;
  struct stat st {};
  ASSERT_EQ(0, ::stat(path.c_str(), &st));
  EXPECT_EQ(0600u, st.st_mode & 0777);
  EXPECT_TRUE(ConnectUnix(path, SOCK_STREAM));
}

TEST(UnixSocketTest, NeverRemovesAFileThatIsNoSocket) {
  const ScratchDir dir;
  const std::string path = dir.path() + "/precious";
  std::ofstream(path) << "data";
  const auto fd = ListenUnix(path, SOCK_STREAM);
  ASSERT_FALSE(fd);
  EXPECT_EQ(std::errc::file_exists, fd.error().code);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(UnixSocketTest, PathsMayBe107BytesLong) {
  const ScratchDir dir;
  const std::string longest = dir.path() + "/" + std::string(106 - dir.path().size(), 'x');
  const auto listener = ListenUnix(longest, SOCK_STREAM);
  ASSERT_TRUE(listener) << listener.error().context;
  const auto client = ConnectUnix(longest, SOCK_STREAM);
  ASSERT_TRUE(client);
  EXPECT_FALSE(ConnectUnix(longest + "x", SOCK_STREAM));
  for (const std::string& path : {std::string(), longest + "x"}) {
    const auto bad = ListenUnix(path, SOCK_STREAM);
    ASSERT_FALSE(bad);
    EXPECT_EQ(std::errc::filename_too_long, bad.error().code);
    EXPECT_NE(std::string::npos, bad.error().context.find("takes 1 to 107"));
  }
  EXPECT_TRUE(::fcntl(listener->get(), F_GETFL) & O_NONBLOCK);
  EXPECT_FALSE(::fcntl(client->get(), F_GETFL) & O_NONBLOCK);
  for (const int fd : {listener->get(), client->get()}) EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(UnixSocketTest, TheModeOfOtherFilesStays) {
  const ScratchDir dir;
  const mode_t before = ::umask(022);
  { const UniqueFd socket = *ListenUnix(dir.path() + "/s", SOCK_STREAM); }
  EXPECT_EQ(022u, ::umask(before));
}

TEST(MemfdTest, OneByteIsASizeAndNoneIsNot) {
  const auto fd = MakeSealedMemfd("t", 1);
  ASSERT_TRUE(fd);
  struct stat st {};
  ASSERT_EQ(0, ::fstat(fd->get(), &st));
  EXPECT_EQ(1, st.st_size);
  EXPECT_EQ(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, ::fcntl(fd->get(), F_GET_SEALS));
  EXPECT_FALSE(MakeSealedMemfd("t", 0));
}

TEST(UniqueFdTest, ZeroIsADescriptor) {
  const int before = ::dup(0);
  UniqueFd zero{0};
  EXPECT_TRUE(zero);
  zero.Reset();
  EXPECT_FALSE(IsOpen(0));
  if (before >= 0) {
    ::dup2(before, 0);
    ::close(before);
  }
}

TEST(PairTest, EveryEndIsCloseOnExecAndDoesNotBlock) {
  const Pipe pipe = *MakePipe();
  const SocketPair pair = *MakeSeqpacketPair();
  const UniqueFd event = *MakeEventFd();
  for (const int fd : {pipe.read.get(), pipe.write.get(), pair.a.get(), pair.b.get(), event.get()}) {
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(::fcntl(fd, F_GETFL) & O_NONBLOCK);
  }
}

TEST(UnixSocketTest, TooLongPathIsNamed) {
  const auto fd = ListenUnix("/tmp/" + std::string(120, 'x'), SOCK_STREAM);
  ASSERT_FALSE(fd);
  EXPECT_EQ(std::errc::filename_too_long, fd.error().code);
  EXPECT_NE(std::string::npos, fd.error().context.find("--runtime-dir"));
}

TEST(MessageTest, CarriesHeadTailAndFds) {
  const SocketPair pair = *MakeSeqpacketPair();
  const UniqueFd event = *MakeEventFd();
  const int fds[] = {event.get()};
  const uint64_t head = 7;
  const uint64_t tail[] = {8, 9};
  ASSERT_TRUE(SendStruct(pair.a.get(), head, fds, std::as_bytes(std::span{tail})));
  const auto message = ReceiveMessage(pair.b.get());
  ASSERT_TRUE(message);
  EXPECT_EQ(24u, message->bytes.size());
  EXPECT_EQ(7u, *message->As<uint64_t>());
  ASSERT_EQ(1u, message->fds.size());
  SignalEventFd(message->fds[0].get());
  EXPECT_TRUE(DrainEventFd(event.get()));
}

TEST(MessageTest, ShortNothingAndGone) {
  SocketPair pair = *MakeSeqpacketPair();
  EXPECT_EQ(std::errc::resource_unavailable_try_again, ReceiveMessage(pair.b.get()).error().code);
  ASSERT_TRUE(SendStruct(pair.a.get(), uint16_t{1}));
  EXPECT_EQ(std::errc::bad_message, ReceiveMessage(pair.b.get())->As<uint64_t>().error().code);
  pair.a.Reset();
  EXPECT_EQ(std::errc::not_connected, ReceiveMessage(pair.b.get()).error().code);
}

TEST(MappingTest, ContainsDoesNotOverflow) {
  const Mapping m = *Mapping::Anonymous(4096);
  EXPECT_TRUE(m.Contains(0, 4096));
  EXPECT_TRUE(m.Contains(4096, 0));
  EXPECT_FALSE(m.Contains(1, 4096));
  EXPECT_FALSE(m.Contains(~0ull, 2));
  EXPECT_FALSE(m.Contains(2, ~0ull));
}

TEST(MappingTest, MapAtShowsTheFileAndStaysInside) {
  const UniqueFd file = *MakeSealedMemfd("t", 8192);
  const Mapping view = *Mapping::Shared(file.get(), 0, 8192);
  view.At<uint32_t>(4096)[0] = 42;
  Mapping area = *Mapping::Reserve(8192);
  ASSERT_TRUE(area.MapAt(0, file.get(), 4096, 4096, true));
  EXPECT_EQ(42u, *area.At<uint32_t>(0));
  EXPECT_FALSE(area.MapAt(4096, file.get(), 0, 8192, true));
}

}  // namespace
}  // namespace vgpud
