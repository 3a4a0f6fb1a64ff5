// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/message.h"

namespace vgpud {
namespace {

// A TCP connection whose closing takes as long as `rest` lives: it lingers, and its data does not fit anywhere.
struct Lingering {
  UniqueFd socket;
  UniqueFd rest;
};
Lingering MakeLingering() {
  const UniqueFd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(0, ::bind(listener.get(), at, size));
  EXPECT_EQ(0, ::listen(listener.get(), 1));
  EXPECT_EQ(0, ::getsockname(listener.get(), at, &size));
  Lingering pair{UniqueFd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, {}};
  EXPECT_EQ(0, ::connect(pair.socket.get(), at, size));
  pair.rest = UniqueFd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  const std::vector<char> data(1 << 20);
  while (::send(pair.socket.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) continue;
  const linger ten_minutes{1, 600};
  EXPECT_EQ(0, ::setsockopt(pair.socket.get(), SOL_SOCKET, SO_LINGER, &ten_minutes, sizeof ten_minutes));
  return pair;
}

// Returns when the other end of `peer` has been closed.
void WaitForEnd(const UniqueFd& peer) {
  pollfd end{peer.get(), POLLRDHUP, 0};
  EXPECT_EQ(1, ::poll(&end, 1, 20'000));
}

TEST(ForeignFdTest, ClosesAtOnceBeforeThereAreClosers) {
  SocketPair pair = *MakeSeqpacketPair();
  ForeignFd{std::move(pair.a)}.Reset();
  char byte = 0;
  EXPECT_EQ(0, ::recv(pair.b.get(), &byte, 1, 0));
}

// From here on there are closers: they cannot be taken back. Each test would hang for ten minutes if closing waited.
TEST(ForeignFdTest, ClosingASocketThatLingersIsNotWaitedFor) {
  StartClosers();
  Lingering slow = MakeLingering();
  ForeignFd{std::move(slow.socket)}.Reset();
  slow.rest.Reset();
}

TEST(ForeignFdTest, AsManyThatLingerAsThereAreThreadsDelayOnlyEachOther) {
  StartClosers();
  std::vector<UniqueFd> rests;
  for (size_t i = 0; i < kMostClosers + 4; ++i) {
    Lingering slow = MakeLingering();
    CloseElsewhere(std::move(slow.socket));
    rests.push_back(std::move(slow.rest));
  }
  EXPECT_FALSE(ManyToClose());
  SocketPair pair = *MakeSeqpacketPair();
  CloseElsewhere(std::move(pair.a));
  EXPECT_GE(WaitingToClose(), 1u) << "behind those that linger";
  rests.clear();
  WaitForEnd(pair.b);
}

TEST(ForeignFdTest, OnlyTheWatchOfAFilterIsTakenForOne) {
  const UniqueFd event = *MakeEventFd(), memory = *MakeSealedMemfd("anon_inode:seccomp notify", 1);
  EXPECT_FALSE(IsFilterWatch(-1));
  EXPECT_FALSE(IsFilterWatch(event.get()));
  EXPECT_FALSE(IsFilterWatch(memory.get()));
  // A thread of its own: the filter stays with it.
  std::thread([] {
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{1, &allow};
    ASSERT_EQ(0, ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    const UniqueFd watch{
        static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program))};
    EXPECT_EQ(static_cast<bool>(watch), IsFilterWatch(watch.get()));
  }).join();
}

TEST(ForeignFdTest, ManyToCloseIsKnown) {
  StartClosers();
  std::vector<UniqueFd> rests;
  for (size_t i = 0; i < kMostClosers; ++i) {
    Lingering slow = MakeLingering();
    CloseElsewhere(std::move(slow.socket));
    rests.push_back(std::move(slow.rest));
  }
  SocketPair last = *MakeSeqpacketPair();
  for (size_t i = 0; i < kManyToClose + kMostClosers; ++i) CloseElsewhere(*Dup(last.a.get()));
  EXPECT_TRUE(ManyToClose());
  CloseElsewhere(std::move(last.a));
  rests.clear();
  WaitForEnd(last.b);
}

TEST(ForeignFdTest, MessagesWithUnwantedDescriptorsThatLingerAreReceivedAtOnce) {
  StartClosers();
  SocketPair pair = *MakeSeqpacketPair();
  Lingering slow = MakeLingering();
  std::array<int, kMaxMessageFds> numbers;
  numbers.fill(slow.socket.get());
  ASSERT_TRUE(SendStruct(pair.a.get(), 1, numbers));
  slow.socket.Reset();
  EXPECT_TRUE(ReceiveMessage(pair.b.get()));
}

// One message with 200 descriptors: more than we ever ask for, fewer than the kernel takes.
TEST(ForeignFdTest, TooManyDescriptorsInAMessageAreRefusedAndClosedByUs) {
  StartClosers();
  SocketPair pair = *MakeSeqpacketPair();
  Lingering slow = MakeLingering();
  std::array<int, 200> numbers;
  numbers.fill(slow.socket.get());
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof numbers)] = {};
  char byte = 1;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof numbers);
  std::memcpy(CMSG_DATA(header), numbers.data(), sizeof numbers);
  ASSERT_EQ(1, ::sendmsg(pair.a.get(), &message, 0));
  slow.socket.Reset();
  EXPECT_EQ(std::errc::message_size, ReceiveMessage(pair.b.get()).error().code);
}

TEST(ForeignFdTest, ASocketInWhoseQueueOneWaitsIsClosedElsewhereToo) {
  StartClosers();
  SocketPair pair = *MakeSeqpacketPair();
  Lingering slow = MakeLingering();
  const int numbers[] = {slow.socket.get()};
  ASSERT_TRUE(SendStruct(pair.a.get(), 1, numbers));
  slow.socket.Reset();
  ForeignFd{std::move(pair.b)}.Reset();
}

TEST(ForeignFdTest, WhereTheKernelCanNobodySendsDescriptors) {
  SocketPair pair = *MakeSeqpacketPair();
  const int numbers[] = {pair.a.get()};
  if (!RefuseFds(pair.b.get())) GTEST_SKIP() << "Linux 6.16 can";
  EXPECT_FALSE(SendStruct(pair.a.get(), 1, numbers));
  EXPECT_TRUE(SendStruct(pair.a.get(), 1));
}

}  // namespace
}  // namespace vgpud
