// SPDX-License-Identifier: Apache-2.0
// What the holder of one end can do to the holder of the other: nothing.
#include "base/signal_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace vgpud {
namespace {

bool Readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0;
}

bool SendFd(int socket, int fd) {
  char byte = 1;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  *reinterpret_cast<int*>(CMSG_DATA(head)) = fd;
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

class SignalSocketTest : public testing::Test {
 protected:
  SignalSocket socket_ = *MakeSignalSocket();
};

TEST_F(SignalSocketTest, ManySignalsAreOne) {
  EXPECT_EQ(Signals::kNone, TakeSignals(socket_.listens.get()));
  for (int i = 0; i < 5; ++i) SendSignal(socket_.rings.get());
  EXPECT_EQ(Signals::kSome, TakeSignals(socket_.listens.get()));
  EXPECT_EQ(Signals::kNone, TakeSignals(socket_.listens.get()));
}

TEST_F(SignalSocketTest, AFullQueueDoesNotHoldUpTheSenderWhateverTheFlagsSay) {
  ASSERT_EQ(0, ::fcntl(socket_.rings.get(), F_SETFL, 0));
  ASSERT_EQ(0, ::fcntl(socket_.listens.get(), F_SETFL, 0));
  for (int i = 0; i < 10'000; ++i) SendSignal(socket_.rings.get());
  while (Readable(socket_.listens.get())) ASSERT_EQ(Signals::kSome, TakeSignals(socket_.listens.get()));
  EXPECT_EQ(Signals::kNone, TakeSignals(socket_.listens.get()));
}

TEST_F(SignalSocketTest, NothingCanBeSentTheOtherWay) {
  EXPECT_EQ(-1, ::send(socket_.listens.get(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
  EXPECT_EQ(EPIPE, errno);
  EXPECT_FALSE(SendFd(socket_.listens.get(), 0));
}

TEST_F(SignalSocketTest, DescriptorsAreRefusedWhereTheKernelKnowsHow) {
  const int no = 0;
  if (::setsockopt(socket_.listens.get(), SOL_SOCKET, 83, &no, sizeof no) != 0) GTEST_SKIP() << "Linux before 6.16";
  EXPECT_FALSE(SendFd(socket_.rings.get(), 0));
  EXPECT_EQ(Signals::kNone, TakeSignals(socket_.listens.get()));
}

TEST_F(SignalSocketTest, WhatWasSentBeforeTheEndIsHeardAndThenTheEnd) {
  SendSignal(socket_.rings.get());
  socket_.rings.Reset();
  EXPECT_EQ(Signals::kSome, TakeSignals(socket_.listens.get()));
  EXPECT_EQ(Signals::kGone, TakeSignals(socket_.listens.get()));
}

TEST_F(SignalSocketTest, ASignalToNobodyIsNoError) {
  socket_.listens.Reset();
  SendSignal(socket_.rings.get());
}

}  // namespace
}  // namespace vgpud
