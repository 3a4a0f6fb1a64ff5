// SPDX-License-Identifier: Apache-2.0
// When an executor takes its memory off the card and brings it back, and what its slot says of that. Time is virtual.
#include "gpu/exec/card_memory.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "base/futex.h"
#include "tests/unit/exec/fakes/fake_evictable.h"

namespace vgpud::exec {
namespace {

using Back = Evictable::Back;
using Memory = FakeEvictable;
constexpr bool kWork = true, kNone = false;

class CardMemoryTest : public testing::Test {
 protected:
  Back BringBack(bool stopped = false) {
    const auto back = card_.BringBack(memory_, {&word_, stopped ? 0u : 1u});
    EXPECT_TRUE(back);
    return *back;
  }

  Memory memory_;
  GrantPage page_;
  ExecMemory slot_;
  std::atomic<uint32_t> word_{1};
  int rings_ = 0;
  CardMemory card_{page_, slot_, [this] { return memory_.now_ns; }, [this] { ++rings_; }};
};

TEST_F(CardMemoryTest, ItStaysUntilAnotherVfWantsIt) {
  EXPECT_FALSE(card_.MustLeave(memory_, kNone));
  page_.make_room = 1;
  EXPECT_TRUE(card_.MustLeave(memory_, kNone));
  EXPECT_TRUE(card_.MustLeave(memory_, kWork));
  card_.Leave(memory_);
  card_.Tell(&memory_, kNone);
  EXPECT_FALSE(card_.MustLeave(memory_, kNone)) << "there is nothing";
  EXPECT_EQ(1u, slot_.evictions);
  EXPECT_EQ(8000u, slot_.evicted_bytes);
  EXPECT_EQ(1000u, slot_.evicting_ns);
  EXPECT_EQ(0u, slot_.on_card);
  EXPECT_EQ(8000u, slot_.off_card);
}

// Its clock is ahead, so that time alone ends no wait.
TEST_F(CardMemoryTest, RoomThatWasMadeSinceItLookedEndsTheWait) {
  CardMemory card{page_, slot_, [] { return MonotonicNs() + 3'600'000'000'000; }, [this] { ++rings_; }};
  memory_.here = false;
  memory_.full = true;
  for (int look = 0; look < 3; ++look) {
    ASSERT_EQ(Back::kNoRoom, *card.BringBack(memory_, {&word_, 1}));
    std::thread other([&] {
      page_.room.fetch_add(1);
      FutexWakeAll(&page_.room);
    });
    card.AwaitRoom();
    other.join();
  }
  EXPECT_EQ(1, rings_) << "vgpud hears once that it waits";
}

TEST_F(CardMemoryTest, NobodyWaitsBehindTheEndOfTheTurn) {
  CardMemory card{page_, slot_, [] { return MonotonicNs() + 3'600'000'000'000; }, [] {}};
  memory_.here = false;
  memory_.full = true;
  page_.deadline_ns = MonotonicNs();
  ASSERT_EQ(Back::kNoRoom, *card.BringBack(memory_, {&word_, 1}));
  card.AwaitRoom();
}

TEST_F(CardMemoryTest, WhoHasMadeRoomRings) {
  page_.make_room = 1;
  card_.Leave(memory_);
  EXPECT_EQ(1, rings_);
  memory_.here = memory_.refuses = true;
  card_.Leave(memory_);
  EXPECT_EQ(1, rings_);
}

// Else two VFs with short slices would move their memory only.
TEST_F(CardMemoryTest, WhatHasComeBackStaysUntilItWasComputedWith) {
  page_.make_room = 1;
  card_.Leave(memory_);
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_FALSE(card_.MustLeave(memory_, kWork));
  EXPECT_TRUE(card_.MustLeave(memory_, kNone)) << "it has nothing to compute any more";
  card_.Computed();
  EXPECT_TRUE(card_.MustLeave(memory_, kWork));
  EXPECT_EQ(8000u, slot_.returned_bytes);
  EXPECT_EQ(1000u, slot_.returning_ns);
  EXPECT_EQ(8000u, slot_.on_card);
}

TEST_F(CardMemoryTest, WhatItDoesNotFindItWantsUntilItHasIt) {
  memory_.here = false;
  memory_.full = true;
  EXPECT_EQ(Back::kNoRoom, BringBack());
  EXPECT_EQ(8000u, slot_.wanted);
  EXPECT_EQ(0u, slot_.returning_ns) << "nothing came";
  memory_.full = false;
  EXPECT_EQ(Back::kStopped, BringBack(true));
  EXPECT_EQ(0u, slot_.wanted) << "it has its place";
  EXPECT_EQ(4000u, slot_.returned_bytes);
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(12000u, slot_.returned_bytes);
}

TEST_F(CardMemoryTest, WhoHasNothingToComputeAnyMoreWantsNothing) {
  memory_.here = false;
  memory_.full = true;
  EXPECT_EQ(Back::kNoRoom, BringBack());
  card_.Tell(&memory_, kWork);
  EXPECT_EQ(8000u, slot_.wanted);
  card_.Tell(&memory_, kNone);
  EXPECT_EQ(0u, slot_.wanted);
  EXPECT_EQ(8000u, slot_.off_card);

  EXPECT_EQ(Back::kNoRoom, BringBack());
  memory_.bytes = 0;  // freed
  card_.Tell(&memory_, kWork);
  EXPECT_EQ(0u, slot_.wanted);

  slot_.wanted = 5;
  card_.Tell(nullptr, kWork);
  EXPECT_EQ(0u, slot_.wanted + slot_.on_card + slot_.off_card) << "the context is gone";
}

TEST_F(CardMemoryTest, WithNothingToBringBackNothingIsAsked) {
  memory_.refuses = true;
  EXPECT_EQ(Back::kAll, BringBack());
  EXPECT_EQ(5u, memory_.now_ns);
}

TEST_F(CardMemoryTest, ErrorsLeaveItWhereItIs) {
  memory_.refuses = true;
  card_.Leave(memory_);
  card_.Tell(&memory_, kNone);
  EXPECT_EQ(0u, slot_.evictions);
  EXPECT_EQ(8000u, slot_.on_card);
  memory_.here = false;
  EXPECT_EQ(CuStatus::kUnknown, card_.BringBack(memory_, {&word_, 1}).error().status);
  EXPECT_EQ(0u, slot_.wanted) << "room would not help";
}

}  // namespace
}  // namespace vgpud::exec
