// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/backlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::cuda {
namespace {

class BacklogTest : public testing::Test {
 protected:
  Backlog::Place Add(uint32_t stream, bool tells = false, uint32_t op = VGPU_OP_LAUNCH, uint64_t units = 1) {
    return backlog_.Add({stream, 0, ++seqno_, op}, units, tells);
  }
  // As much as the stream may have.
  uint64_t Flood(uint32_t stream) {
    uint64_t units = 0;
    for (; units <= Backlog::kMost && backlog_.HasRoom(stream, 1); ++units) last_ = Add(stream, backlog_.IsDue(stream));
    return units;
  }
  Backlog backlog_;
  Backlog::Place last_;
  uint64_t seqno_ = 0;
};

TEST_F(BacklogTest, CountsWhatWaitsInStreams) {
  EXPECT_EQ(0u, Backlog::Units(VGPU_OP_MEM_ALLOC, 0));
  EXPECT_EQ(0u, Backlog::Units(VGPU_OP_CONTEXT_SYNC, 0));
  EXPECT_EQ(1u, Backlog::Units(VGPU_OP_LAUNCH, 300));
  EXPECT_EQ(9u, Backlog::Units(VGPU_OP_LAUNCH, 32768));
  EXPECT_EQ(17u, Backlog::Units(VGPU_OP_COPY_IN, 1 << 20)) << "a host keeps no long copy";
}

TEST_F(BacklogTest, AStreamLeavesRoomForOthersAndForCalls) {
  uint64_t total = 0, before = Backlog::kMost;
  for (uint32_t stream = 16; stream < 24; ++stream) {
    const uint64_t units = Flood(stream);
    EXPECT_GT(units, 0u);
    EXPECT_LE(units, before);
    before = units;
    total += units;
  }
  EXPECT_LE(total, Backlog::kMost);
  EXPECT_GE(Flood(99), 16u) << "one that goes on need not wait for each of its operations";
  EXPECT_TRUE(backlog_.HasRoom(100, 1));
}

TEST_F(BacklogTest, EveryStreamHasOneUntilThereIsNoRoom) {
  for (uint32_t stream = 16; stream < 16 + Backlog::kMost; ++stream) {
    ASSERT_TRUE(backlog_.HasRoom(stream, 1)) << stream;
    Add(stream);
  }
  EXPECT_FALSE(backlog_.HasRoom(9, 1));
}

TEST_F(BacklogTest, AFloodedStreamWillTellOfItsEnd) {
  Flood(16);
  EXPECT_FALSE(backlog_.IsSilent(16));
  backlog_.Done(last_, false);
  EXPECT_TRUE(backlog_.HasRoom(16, Backlog::kGrain));
}

TEST_F(BacklogTest, ACompletionIsThatOfAllBeforeItInItsStreamOnly) {
  Add(17);
  for (int i = 0; i < 100; ++i) Add(16);
  const auto last = Add(16, true);
  Add(16);
  EXPECT_FALSE(backlog_.IsSilent(16));
  EXPECT_TRUE(backlog_.IsSilent(17));
  backlog_.Done(last, false);
  EXPECT_TRUE(backlog_.IsSilent(16)) << "of the one behind it nothing tells";
  EXPECT_TRUE(backlog_.IsSilent(17));
}

TEST_F(BacklogTest, WhatMayHaveBeenRefusedTellsNothingOfThoseBefore) {
  const uint64_t units = Flood(16);
  const auto refused = Add(16, true, VGPU_OP_FILL);
  backlog_.Done(refused, true);
  EXPECT_FALSE(backlog_.HasRoom(16, 1)) << units;
  EXPECT_TRUE(backlog_.IsSilent(16)) << "somebody has to ask again";
  const auto asked = Add(16, true, VGPU_OP_STREAM_SYNC);
  backlog_.Done(asked, true);
  EXPECT_FALSE(backlog_.IsSilent(16)) << "the error of something else comes with it";
  EXPECT_TRUE(backlog_.HasRoom(16, Backlog::kMost / 2));
}

TEST_F(BacklogTest, AWaitForAllIsTheEndOfWhatWasBefore) {
  Flood(16);
  const auto wait = backlog_.Add({0, 0, ++seqno_, VGPU_OP_CONTEXT_SYNC}, 0, true);
  Add(17);
  backlog_.Done(wait, false);
  EXPECT_TRUE(backlog_.HasRoom(16, Backlog::kMost / 2));
  EXPECT_TRUE(backlog_.IsSilent(17));
}

TEST_F(BacklogTest, KnowsWhetherAnythingIsHeld) {
  EXPECT_FALSE(backlog_.AnyHeld());
  Add(16);
  EXPECT_FALSE(backlog_.AnyHeld());
  const auto wait = Add(16, true, VGPU_OP_GATE_WAIT);
  Add(17, false, VGPU_OP_EVENT_WAIT);
  EXPECT_TRUE(backlog_.AnyHeld());
  EXPECT_EQ(std::vector<uint32_t>{17}, backlog_.SilentHeld());
  backlog_.Done(wait, false);
  EXPECT_TRUE(backlog_.AnyHeld());
  backlog_.Done(Add(17, true, VGPU_OP_STREAM_SYNC), false);
  EXPECT_FALSE(backlog_.AnyHeld());
}

// Many streams with little each leave no room either.
TEST_F(BacklogTest, SomeAreAskedAtATimeAndTheCallersFirst) {
  for (uint32_t stream = 100; stream < 100 + Backlog::kMost && backlog_.HasRoom(stream, 2); ++stream)
    Add(stream, false, VGPU_OP_LAUNCH, 2);
  EXPECT_FALSE(backlog_.HasRoom(99, 1));
  const auto silent = backlog_.Silent(333);
  ASSERT_LT(10u, silent.size());
  EXPECT_GE(100u, silent.size());
  EXPECT_EQ(333u, silent.front());
  for (const uint32_t stream : silent) backlog_.Done(Add(stream, true, VGPU_OP_STREAM_SYNC), false);
  EXPECT_TRUE(backlog_.HasRoom(99, 1));
  EXPECT_FALSE(backlog_.IsSilent(333));
}

}  // namespace
}  // namespace vgpud::cuda
