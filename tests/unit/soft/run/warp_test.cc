// SPDX-License-Identifier: Apache-2.0
// The splits of a warp, one decision at a time: who runs next and how far, who meets whom, who waits for whom.
#include "gpu/soft/run/warp.h"

#include <gtest/gtest.h>

#include <cstring>

#include "gpu/soft/run/grid.h"

namespace vgpud::soft {
namespace {

using State = Split::State;
const Inst* const kNoLimit = reinterpret_cast<const Inst*>(UINTPTR_MAX);

class WarpSplits : public testing::Test {
 protected:
  WarpSplits() : code_(100), stack_(4096) {
    w.stack = stack_.data();
    w.base[kFrame] = w.stack;
    w.live = ~0u;
    w.limit = kNoLimit;
    w.selections = 100;
  }
  const Inst* At(size_t n) const { return code_.data() + n; }
  Split& Add(size_t pc, uint32_t mask, State state = State::kRun, uint32_t need = 0) {
    Split& split = w.splits[w.split_count++];
    split = {At(pc), mask, 0, 0, state, false, 0, need, 0};
    return split;
  }
  void Current(size_t pc, uint32_t mask, uint32_t frame = 0, uint32_t local = 0) {
    w.pc = At(pc);
    w.mask = mask;
    w.frame = frame;
    w.local = local;
  }
  size_t pc() const { return static_cast<size_t>(w.pc - code_.data()); }

  Warp w{};
  std::vector<Inst> code_;
  std::vector<std::byte> stack_;
};

TEST_F(WarpSplits, TheLowestRunsUpToTheNext) {
  Add(30, 1);
  Add(10, 2);
  Add(20, 4);
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 10u);
  EXPECT_EQ(w.mask, 2u);
  EXPECT_EQ(w.limit, At(20));
  EXPECT_EQ(w.split_count, 2u);
  EXPECT_EQ(w.selections, 101u);
  EXPECT_EQ(w.fairness, 1u);
  w.mask = 0;
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 20u);
  EXPECT_EQ(w.limit, At(30));
  w.mask = 0;
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 30u);
  EXPECT_EQ(w.limit, kNoLimit);
  w.mask = 0;
  EXPECT_FALSE(Reselect(w)) << "nobody is left";
}

TEST_F(WarpSplits, TheDeepestCallRunsFirstAndOnlyItsOwnDepthIsALimit) {
  Add(10, 1);
  Split& deep = Add(50, 2);
  deep.frame = 128;
  deep.local = 16;
  Split& deeper = Add(60, 4);
  deeper.frame = 128;
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 50u);
  EXPECT_EQ(w.frame, 128u);
  EXPECT_EQ(w.local, 16u);
  EXPECT_EQ(w.base[kFrame], w.stack + 128);
  EXPECT_EQ(w.limit, At(60));
  w.mask = 0;
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 60u);
  EXPECT_EQ(w.limit, kNoLimit) << "the split at 10 is of another call";
}

TEST_F(WarpSplits, OneAtTheSamePlaceInAnotherCallIsNoLimit) {
  Add(10, 1);
  Add(10, 2).local = 4;
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(w.mask, 1u);
  EXPECT_EQ(w.limit, kNoLimit);
}

TEST_F(WarpSplits, WhoWaitsIsNotPickedButOneThatWaitsForTheWarpIsALimit) {
  Add(5, 1, State::kBarrier);
  Add(20, 2);
  Add(15, 4, State::kBarrier);
  Add(40, 8, State::kWarpSync, 2 | 8);
  Add(30, 16, State::kBarrier);
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 20u);
  EXPECT_EQ(w.limit, At(40));
  EXPECT_EQ(w.split_count, 4u);
}

TEST_F(WarpSplits, AloneItRunsWithoutALimit) {
  Current(7, 3);
  w.limit = nullptr;
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 7u);
  EXPECT_EQ(w.mask, 3u);
  EXPECT_EQ(w.limit, kNoLimit);
  EXPECT_EQ(w.selections, 100u) << "there was nothing to select";
}

TEST_F(WarpSplits, TheCurrentOneIsPutAwayAsItIs) {
  Current(70, 3, 0, 8);
  w.force_sync = true;
  Add(20, 4);
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 20u);
  EXPECT_FALSE(w.force_sync);
  ASSERT_EQ(w.split_count, 1u);
  const Split& away = w.splits[0];
  EXPECT_EQ(away.pc, At(70));
  EXPECT_EQ(away.mask, 3u);
  EXPECT_EQ(away.local, 8u);
  EXPECT_EQ(away.state, State::kRun);
  EXPECT_TRUE(away.forced);
  EXPECT_EQ(away.last_run, 100u);
  w.mask = 0;
  ASSERT_TRUE(Reselect(w));
  EXPECT_TRUE(w.force_sync);
}

struct FairnessCase {
  bool sync_seen;
  uint32_t fairness;
  bool oldest;
};

TEST_F(WarpSplits, TheOneThatHasNotRunForLongestHasItsTurnAfterSomeSelections) {
  const FairnessCase cases[] = {{true, 0, false},    {true, 2, false},    {true, 3, true},
                                {true, 9, true},     {false, 3, false},   {false, 4094, false},
                                {false, 4095, true}, {false, 5000, true}, {false, 0, false}};
  for (const FairnessCase& c : cases) {
    w.split_count = 0;
    Add(10, 1).last_run = 50;
    Add(30, 2).last_run = 20;
    Add(20, 4).last_run = 20;
    w.mask = 0;
    w.sync_seen = c.sync_seen;
    w.fairness = c.fairness;
    ASSERT_TRUE(Reselect(w));
    EXPECT_EQ(pc(), c.oldest ? 30u : 10u) << c.fairness;
    EXPECT_EQ(w.fairness, c.oldest ? 0 : c.fairness + 1);
    EXPECT_EQ(w.sync_seen, c.sync_seen && !c.oldest);
    EXPECT_EQ(w.limit, c.oldest ? kNoLimit : At(20));
  }
}

struct WaitCase {
  const char* name;
  uint32_t live;
  Split splits[3];
  bool picked;
  uint32_t mask;  // that is picked
  bool forced;
};

TEST_F(WarpSplits, WhoWaitsForLanesOfTheWarpGoesOnWhenTheyHaveCome) {
  const auto split = [&](size_t pc, uint32_t mask, State state, uint32_t need) {
    return Split{At(pc), mask, 0, 0, state, false, 0, need, 0};
  };
  const Split none = split(0, 0, State::kBarrier, 0);
  const WaitCase cases[] = {
      {"complete", 7, {split(10, 7, State::kWarpSync, 7), none, none}, true, 7, false},
      {"those that are missing have exited", 3, {split(10, 3, State::kWarpSync, 7), none, none}, true, 3, false},
      {"more have come than it needs", 7, {split(10, 7, State::kWarpSync, 3), none, none}, true, 7, false},
      {"one is elsewhere", 7, {split(10, 3, State::kWarpSync, 7), split(20, 4, State::kRun, 0), none}, true, 4, false},
      {"they wait for each other at two places",
       7,
       {split(10, 3, State::kWarpSync, 7), split(20, 4, State::kWarpSync, 7), none},
       true,
       3,
       true},
      {"one needs only itself",
       7,
       {split(10, 3, State::kWarpSync, 7), split(20, 4, State::kWarpSync, 4), none},
       true,
       3,
       true},
      {"one is at a barrier",
       7,
       {split(10, 3, State::kWarpSync, 7), split(20, 4, State::kBarrier, 0), none},
       false,
       0,
       false},
      {"nobody knows where one is",
       15,
       {split(10, 3, State::kWarpSync, 15), split(20, 4, State::kWarpSync, 4), none},
       true,
       4,
       false},
      {"who never comes is not waited for", 15, {split(10, 3, State::kWarpSync, 15), none, none}, true, 3, true},
  };
  for (const WaitCase& c : cases) {
    w.split_count = 0;
    w.mask = 0;
    w.live = c.live;
    w.fairness = 0;
    for (const Split& s : c.splits)
      if (s.mask != 0) w.splits[w.split_count++] = s;
    EXPECT_EQ(Reselect(w), c.picked) << c.name;
    EXPECT_EQ(w.mask, c.mask) << c.name;
    if (c.picked) {
      EXPECT_EQ(w.force_sync, c.forced) << c.name;
    }
  }
}

TEST_F(WarpSplits, WhoArrivesWhereOthersWaitJoinsThem) {
  Current(10, 4);
  Add(10, 3, State::kWarpSync, 7);
  Add(50, 8);
  ASSERT_TRUE(Reselect(w));
  EXPECT_EQ(pc(), 10u);
  EXPECT_EQ(w.mask, 7u);
  EXPECT_EQ(w.split_count, 1u);
}

TEST_F(WarpSplits, WhoArrivesInAnotherCallDoesNot) {
  for (const int difference : {0, 1, 2}) {
    w.split_count = 0;
    w.fairness = 0;
    Current(difference == 0 ? 11 : 10, 4, difference == 1 ? 64 : 0, difference == 2 ? 8 : 0);
    Add(10, 3, State::kWarpSync, 7);
    ASSERT_TRUE(Reselect(w));
    EXPECT_EQ(w.mask, 4u) << difference;
    ASSERT_EQ(w.split_count, 1u);
    EXPECT_EQ(w.splits[0].state, State::kWarpSync);
  }
}

TEST_F(WarpSplits, PartedLanesRunUpToWhereTheyCanMeet) {
  struct Case {
    size_t stay, other, limit_before;  // 99: none
    const Inst* limit;
  };
  const Case cases[] = {{11, 20, 99, At(20)},  {11, 20, 15, At(15)}, {11, 20, 20, At(20)}, {11, 20, 21, At(20)},
                        {11, 11, 99, nullptr}, {11, 5, 99, nullptr}, {11, 12, 99, At(12)}};
  for (const Case& c : cases) {
    w.split_count = 0;
    Current(10, 0xff);
    w.limit = c.limit_before == 99 ? kNoLimit : At(c.limit_before);
    EXPECT_EQ(Diverge(w, At(c.stay), 0xf0, At(c.other), 0x0f), At(c.stay));
    EXPECT_EQ(w.limit, c.limit) << c.other << ", " << c.limit_before;
    EXPECT_EQ(w.mask, 0xf0u);
    ASSERT_EQ(w.split_count, 1u);
    EXPECT_EQ(w.splits[0].pc, At(c.other));
    EXPECT_EQ(w.splits[0].mask, 0x0fu);
    EXPECT_EQ(w.splits[0].last_run, 100u);
    EXPECT_EQ(w.splits[0].state, State::kRun);
    EXPECT_FALSE(w.splits[0].forced);
  }
}

TEST_F(WarpSplits, LanesAtTheSamePlaceOfTheSameCallBecomeOneSplit) {
  struct Case {
    size_t pc;
    uint32_t frame, local;
    State state;
    bool one;
  };
  const Case cases[] = {{20, 64, 8, State::kRun, true},      {21, 64, 8, State::kRun, false},
                        {20, 0, 8, State::kRun, false},      {20, 64, 0, State::kRun, false},
                        {20, 64, 8, State::kBarrier, false}, {20, 64, 8, State::kWarpSync, false}};
  for (const Case& c : cases) {
    w.split_count = 0;
    Split& there = Add(c.pc, 0x100, c.state);
    there.frame = c.frame;
    there.local = c.local;
    there.last_run = 40;
    Current(10, 0xff, 64, 8);
    Diverge(w, At(11), 0xf0, At(20), 0x0f);
    EXPECT_EQ(w.split_count, c.one ? 1u : 2u);
    EXPECT_EQ(w.splits[0].mask, c.one ? 0x10fu : 0x100u);
    EXPECT_EQ(w.splits[0].last_run, 40u);
  }
}

TEST_F(WarpSplits, ThoseThatWaitTogetherNeedWhatEachNeeds) {
  Current(10, 1);
  EXPECT_FALSE(WarpSyncReady(w, At(10), 0x11));
  Current(10, 2);
  EXPECT_FALSE(WarpSyncReady(w, At(10), 0x22));
  ASSERT_EQ(w.split_count, 1u);
  EXPECT_EQ(w.splits[0].mask, 3u);
  EXPECT_EQ(w.splits[0].need, 0x33u);
}

TEST_F(WarpSplits, AnOperationOfTheWarpWaitsForLiveLanesThatItNeeds) {
  struct Case {
    uint32_t mask, live, need;
    bool force, ready;
  };
  const Case cases[] = {{0xff, ~0u, 0xff, false, true},   {0xff, ~0u, 0x0f, false, true},
                        {0x0f, ~0u, 0xff, false, false},  {0x0f, 0x0f, 0xff, false, true},
                        {0x0f, 0x1f, 0xff, false, false}, {0x0f, ~0u, 0xff, true, true},
                        {0x0f, ~0u, 0, false, true}};
  for (const Case& c : cases) {
    w.split_count = 0;
    Current(10, c.mask);
    w.live = c.live;
    w.force_sync = c.force;
    w.limit = kNoLimit;
    EXPECT_EQ(WarpSyncReady(w, At(10), c.need), c.ready) << c.mask << ", " << c.need;
    EXPECT_FALSE(w.force_sync);
    EXPECT_EQ(w.mask, c.ready ? c.mask : 0);
    EXPECT_EQ(w.limit, c.ready ? kNoLimit : nullptr);
    ASSERT_EQ(w.split_count, c.ready ? 0u : 1u);
    if (c.ready) continue;
    EXPECT_EQ(w.splits[0].state, State::kWarpSync);
    EXPECT_EQ(w.splits[0].mask, c.mask);
    EXPECT_EQ(w.splits[0].need, c.need);
    EXPECT_EQ(w.splits[0].pc, At(10));
  }
}

TEST_F(WarpSplits, WhatASpinLoopContainsGivesOthersTheirTurn) {
  NoteSync(w, At(10));
  EXPECT_FALSE(w.sync_seen);
  EXPECT_EQ(w.limit, kNoLimit) << "nobody else is there";
  for (int n = 0; n < 31; ++n) NoteSync(w, At(10));
  EXPECT_FALSE(w.yielded);
  NoteSync(w, At(10));
  EXPECT_TRUE(w.yielded);
  EXPECT_EQ(w.limit, nullptr);
  w.yielded = false;
  for (int n = 0; n < 31; ++n) NoteSync(w, At(10));
  EXPECT_FALSE(w.yielded) << "it counts from 0 again";
  NoteSync(w, At(20));
  for (int n = 0; n < 31; ++n) NoteSync(w, At(20));
  EXPECT_FALSE(w.yielded) << "another one";
  w.limit = kNoLimit;
  Add(50, 1);
  NoteSync(w, At(30));
  EXPECT_TRUE(w.sync_seen);
  EXPECT_EQ(w.limit, nullptr);
}

// A guard in the frame, for branches and guarded instructions.
class WarpGuards : public WarpSplits {
 protected:
  Inst& Guarded(uint32_t bits, bool negated = false) {
    Inst& i = code_[10];
    i.base[kGuardOperand] = kFrame;
    i.offset[kGuardOperand] = 64;
    i.flags = negated ? kGuardNegated : 0;
    std::memcpy(w.stack + 64, &bits, sizeof bits);
    Current(10, 0xff);
    w.split_count = 0;
    w.limit = kNoLimit;
    return i;
  }
};

TEST_F(WarpGuards, ABranchTakesTheLanesOfItsGuard) {
  struct Case {
    uint32_t bits;
    bool negated;
    size_t target, next;
    uint32_t mask, others;  // that go on now, and later
    size_t others_at;
  };
  const Case cases[] = {{0, false, 40, 11, 0xff, 0, 0},        {0xffffff00, false, 40, 11, 0xff, 0, 0},
                        {0xff, false, 40, 40, 0xff, 0, 0},     {~0u, false, 4, 4, 0xff, 0, 0},
                        {0x0f, false, 40, 11, 0xf0, 0x0f, 40}, {0x0f, true, 40, 11, 0x0f, 0xf0, 40},
                        {0x0f, false, 4, 4, 0x0f, 0xf0, 11},   {0x10f, false, 10, 10, 0x0f, 0xf0, 11},
                        {0xff, true, 40, 11, 0xff, 0, 0},      {0, true, 40, 40, 0xff, 0, 0}};
  for (const Case& c : cases) {
    Inst& i = Guarded(c.bits, c.negated);
    i.target = At(c.target);
    EXPECT_EQ(OpBranchIf(w, &i), At(c.next)) << c.bits << ", " << c.target;
    EXPECT_EQ(w.mask, c.mask);
    ASSERT_EQ(w.split_count, c.others == 0 ? 0u : 1u);
    if (c.others == 0) continue;
    EXPECT_EQ(w.splits[0].mask, c.others);
    EXPECT_EQ(w.splits[0].pc, At(c.others_at));
  }
  code_[10].target = At(33);
  EXPECT_EQ(OpBranch(w, At(10)), At(33));
}

uint32_t seen_mask = 0;
const Inst* Note(Warp& warp, const Inst* i) {
  seen_mask = warp.mask;
  return i + 1;
}
const Inst* NoteAndEnd(Warp& warp, const Inst* i) {
  seen_mask = warp.mask;
  warp.mask = 0;
  return i;
}

TEST_F(WarpGuards, AGuardedInstructionRunsForItsLanesOnly) {
  seen_mask = 0;
  Inst& i = Guarded(0x3c);
  i.inner = Note;
  EXPECT_EQ(OpGuarded(w, &i), At(11));
  EXPECT_EQ(seen_mask, 0x3cu);
  EXPECT_EQ(w.mask, 0xffu);
  Guarded(0x3c, true).inner = Note;
  EXPECT_EQ(OpGuarded(w, &i), At(11));
  EXPECT_EQ(seen_mask, 0xc3u);
  seen_mask = 1234;
  Guarded(0x300);
  EXPECT_EQ(OpGuarded(w, &i), At(11));
  EXPECT_EQ(seen_mask, 1234u) << "none of its lanes is there";
  EXPECT_EQ(w.mask, 0xffu);
  Guarded(0x0f).inner = NoteAndEnd;
  EXPECT_EQ(OpGuarded(w, &i), At(10)) << "what waits stays where it is";
  EXPECT_EQ(w.mask, 0u);
}

}  // namespace
}  // namespace vgpud::soft
