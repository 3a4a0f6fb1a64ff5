// SPDX-License-Identifier: Apache-2.0
// The pieces of memory that all channels of a VF hold together: counted once, and given back on every way out.
#include "tests/unit/vfio/channel/channel_rig.h"

namespace vgpud::vfio {
namespace {

constexpr size_t kMost = 1'048'576;
constexpr size_t kLeft = 10;
constexpr uint32_t kFull = 63;  // the channel that holds all others

class ChannelPiecesTest : public ChannelRig {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::errc{}, Open(kFull));
    ASSERT_EQ(std::errc{}, CodeOf(table->AddBuffer(kFull, &owner, 1, Pieces(kMost - kLeft))));
    EXPECT_TRUE(Room(kLeft));
  }
  // Are exactly so many left?
  bool Room(size_t pieces) {
    if (CodeOf(table->AddBuffer(kFull, &owner, 2, Pieces(pieces + 1))) != std::errc::not_enough_memory) return false;
    if (!table->AddBuffer(kFull, &owner, 2, Pieces(pieces))) return false;
    return table->RemoveBuffer(kFull, &owner, 2).has_value();
  }
};

TEST_F(ChannelPiecesTest, AChannelAndItsBuffersHoldThemUntilItIsClosed) {
  EXPECT_EQ(std::errc::not_enough_memory, Open(0, Pieces(kLeft + 1)));
  EXPECT_EQ(VGPU_CHANNEL_FREE, table->State(0));
  EXPECT_TRUE(Room(kLeft));
  ASSERT_EQ(std::errc{}, Open(0, Pieces(3)));
  EXPECT_TRUE(Room(7));
  ASSERT_TRUE(table->AddBuffer(0, &owner, 1, Pieces(2)));
  EXPECT_TRUE(Room(5));
  EXPECT_FALSE(table->AddBuffer(0, &owner, 1, Pieces(1))) << "exists";
  EXPECT_TRUE(Room(5));
  ASSERT_TRUE(table->AddBuffer(0, &owner, 2, Pieces(1)));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 1));
  EXPECT_TRUE(Room(6));
  ASSERT_TRUE(table->Close(0, &owner));
  EXPECT_TRUE(Room(6)) << "not before it has ended";
  Pump();
  EXPECT_TRUE(Room(kLeft));
}

TEST_F(ChannelPiecesTest, WhatVgpudDoesNotTakeHoldsNone) {
  vgpud_there = false;
  EXPECT_EQ(std::errc::no_such_device, Open(0, Pieces(4)));
  vgpud_there = true;
  EXPECT_TRUE(Room(kLeft));
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  EXPECT_TRUE(Room(kLeft));
}

TEST_F(ChannelPiecesTest, AnExecutorHoldsThemUntilItSaysOtherwise) {
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
  const auto executor = SendExecutor();
  ASSERT_TRUE(table->AddBuffer(0, &owner, 5, Pieces(2)));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 5));
  EXPECT_TRUE(Room(7));
  Unmapped(*executor, 5);
  EXPECT_TRUE(Room(9));
  ASSERT_TRUE(table->Close(0, &owner));
  executor->Die();
  Pump();
  EXPECT_TRUE(Room(kLeft));
}

TEST_F(ChannelPiecesTest, ALostChannelHoldsNone) {
  ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
  const auto executor = SendExecutor();
  ASSERT_TRUE(table->AddBuffer(0, &owner, 5, Pieces(2)));
  ASSERT_TRUE(table->AddBuffer(0, &owner, 6, Pieces(3)));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 6));
  executor->Die();
  Pump();
  EXPECT_TRUE(Room(kLeft));
  ASSERT_TRUE(table->RemoveBuffer(0, &owner, 5));
  EXPECT_TRUE(Room(kLeft));
  ASSERT_TRUE(table->Close(0, &owner));
  Pump();
  EXPECT_TRUE(Room(kLeft));
}

TEST_F(ChannelPiecesTest, MemoryThatTheGuestLosesIsHeldNoMore) {
  constexpr uint64_t kAt = 0x4000'0000;
  for (const bool with_executor : {false, true}) {
    ASSERT_EQ(std::errc{}, Open(0, Pieces(1)));
    const auto executor = with_executor ? SendExecutor() : nullptr;
    ASSERT_TRUE(table->AddBuffer(0, &owner, 5, Pieces(2, kAt)));
    ASSERT_TRUE(table->AddBuffer(0, &owner, 6, Pieces(1, kAt + 0x10000)));
    EXPECT_EQ(!with_executor, table->Drop({Iova{kAt}, 4096}, [](Result<void>) {}));
    if (with_executor) {
      EXPECT_TRUE(Room(6));
      Unmapped(*executor, 5);
    }
    EXPECT_TRUE(Room(8));
    owner.gone.clear();
    ASSERT_TRUE(table->RemoveBuffer(0, &owner, 5));
    EXPECT_EQ((FakeOwner::Heard{{0, 5}}), owner.gone) << "there is nothing to wait for";
    EXPECT_TRUE(Room(8));
    ASSERT_TRUE(table->Close(0, &owner));
    if (with_executor) executor->Die();
    Pump();
    EXPECT_TRUE(Room(kLeft));
  }
}

}  // namespace
}  // namespace vgpud::vfio
