// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/message_queue.h"

#include <event2/event.h>
#include <gtest/gtest.h>

#include "base/message.h"

namespace vgpud::vfio {
namespace {

class MessageQueueTest : public testing::Test {
 protected:
  // The number in the next message that has arrived; -1: none.
  int64_t Next() {
    const auto message = ReceiveMessage(pair.b.get());
    return message ? int64_t{*message->As<uint32_t>()} : -1;
  }
  EventLoop loop;
  SocketPair pair = *MakeSeqpacketPair();
  MessageQueue queue{loop, pair.a.get()};
};

TEST_F(MessageQueueTest, WhatTheSocketTakesIsSentAtOnce) {
  EXPECT_EQ(0u, queue.accepted());
  EXPECT_EQ(0u, queue.sent());
  const auto file = std::make_shared<const UniqueFd>(*MakeEventFd());
  EXPECT_TRUE(queue.SendStruct(uint32_t{5}, {file, file}));
  EXPECT_EQ(1u, queue.accepted());
  EXPECT_EQ(1u, queue.sent());
  EXPECT_EQ(0u, queue.waiting());
  const auto message = ReceiveMessage(pair.b.get());
  ASSERT_TRUE(message);
  EXPECT_EQ(5u, *message->As<uint32_t>());
  EXPECT_EQ(2u, message->fds.size());
}

TEST_F(MessageQueueTest, TheRestWaitsInOrderAndNothingIsLost) {
  uint32_t number = 0;
  while (queue.waiting() < 3) ASSERT_TRUE(queue.SendStruct(number++));
  EXPECT_EQ(number, queue.accepted());
  EXPECT_EQ(number - 3, queue.sent());
  for (uint32_t next = 0; next < number; ++next) {
    event_base_loop(loop.base(), EVLOOP_NONBLOCK);
    ASSERT_EQ(next, Next());
  }
  EXPECT_EQ(-1, Next());
  EXPECT_EQ(0u, queue.waiting());
  EXPECT_EQ(number, queue.sent());
  EXPECT_TRUE(queue.SendStruct(number));
  EXPECT_EQ(number, Next());
}

TEST_F(MessageQueueTest, APeerThatIsGoneGetsNothingAndNothingIsKept) {
  while (queue.waiting() < 3) ASSERT_TRUE(queue.SendStruct(uint32_t{1}));
  pair.b.Reset();
  event_base_loop(loop.base(), EVLOOP_NONBLOCK);
  EXPECT_EQ(0u, queue.waiting());
  EXPECT_FALSE(queue.SendStruct(uint32_t{1}));
  const uint64_t accepted = queue.accepted();
  EXPECT_FALSE(queue.SendStruct(uint32_t{1}));
  EXPECT_EQ(accepted, queue.accepted());
}

TEST_F(MessageQueueTest, APeerThatHasGoneBeforeIsNoticedByTheFirstMessage) {
  pair.b.Reset();
  EXPECT_FALSE(queue.SendStruct(uint32_t{1}));
  EXPECT_EQ(0u, queue.waiting());
}

}  // namespace
}  // namespace vgpud::vfio
