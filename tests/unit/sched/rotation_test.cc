// SPDX-License-Identifier: Apache-2.0
#include "sched/rotation.h"

#include <gtest/gtest.h>

#include <map>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

// Runs turns with the slice used to the nanosecond, unless `used` says otherwise.
struct Bed {
  Rotation rotation;
  PolicyOptions options;
  std::map<uint32_t, Ns> served;

  Bed() { Apply(); }
  void Apply() { rotation.SetOptions(options); }
  void Set(uint32_t vf, uint8_t group, uint8_t priority = kDefaultPriority, bool ready = true, uint32_t weight = 100) {
    VfView view{VfId{vf}, weight, Ns{0}, ready};
    view.group = group;
    view.priority = priority;
    rotation.Set(view, ready);
  }
  Policy::Pick Turn(Ns over = 0ns) {
    const auto pick = rotation.Next();
    EXPECT_TRUE(pick.has_value());
    rotation.Ended(*pick, pick->slice + over);
    served[Raw(pick->vf)] += pick->slice + over;
    return *pick;
  }
  void RunFor(Ns length) {
    served.clear();
    for (Ns passed{0}; passed < length;) passed += Turn().slice;
  }
  double Share(uint32_t vf) {
    Ns all{0};
    for (const auto& [_, time] : served) all += time;
    return static_cast<double>(served[vf].count()) / static_cast<double>(all.count());
  }
};

TEST(GroupTest, WeightGoesFirstBetweenGroupsThenWithin) {
  Bed bed;
  bed.options.group_weights[0] = 300;
  bed.Apply();
  bed.Set(0, 0);
  bed.Set(1, 0, kDefaultPriority, true, 200);
  bed.Set(2, 1);
  bed.Set(3, kNoGroup, kDefaultPriority, true, 100);
  bed.RunFor(30s);
  EXPECT_NEAR(0.2, bed.Share(0), 1e-3);
  EXPECT_NEAR(0.4, bed.Share(1), 1e-3);
  EXPECT_NEAR(0.2, bed.Share(2), 1e-3);
  EXPECT_NEAR(0.2, bed.Share(3), 1e-3);
}

TEST(GroupTest, ASliceThatTheGroupsTurnCutsGoesOnTheNextTime) {
  Bed bed;
  bed.Set(0, 5, kDefaultPriority, true, 250);  // 5 ms, the group has 2 ms
  bed.Set(1, 5);
  bed.Set(2, kNoGroup);
  const std::vector<Policy::Pick> expected = {{VfId{0}, 2ms}, {VfId{2}, 2ms}, {VfId{0}, 2ms},
                                              {VfId{2}, 2ms}, {VfId{0}, 1ms}, {VfId{1}, 1ms},
                                              {VfId{2}, 2ms}, {VfId{1}, 1ms}, {VfId{0}, 1ms}};
  for (const auto& pick : expected) EXPECT_EQ(pick, bed.Turn());
}

TEST(GroupTest, AShortenedSliceCountsInTheMiddleOfTheOldOne) {
  Bed bed;
  bed.Set(0, 5, kDefaultPriority, true, 10'000);  // 200 ms, the group has 2 ms
  bed.Set(1, 5);
  bed.Turn();
  bed.Set(0, 5);
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{0}, 2ms}));
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{1}, 2ms}));
}

TEST(GroupTest, AShorterBaseSliceCountsInTheMiddleOfTheOldOne) {
  Bed bed;
  bed.Set(0, 5, kDefaultPriority, true, 1'000);  // 20 ms, the group has 2 ms
  bed.Set(1, 5);
  bed.Turn();
  bed.options.base_slice = 200us;
  bed.Apply();
  bed.RunFor(2200us);
  EXPECT_EQ(bed.served[0], 2ms);
  EXPECT_EQ(bed.served[1], 200us);
}

TEST(GroupTest, ALaterVfDoesNotInheritTheRestOfASlice) {
  for (const bool moved_first : {false, true}) {
    Bed bed;
    bed.Set(0, 5, kDefaultPriority, true, 200);
    bed.Set(1, 5);
    bed.Turn();
    if (moved_first) bed.Set(0, kNoGroup, kDefaultPriority, false);
    bed.rotation.Clear(VfId{0});
    bed.Set(0, 5, kDefaultPriority, true, 200);
    EXPECT_EQ(bed.Turn().vf, VfId{1}) << moved_first;
  }
}

TEST(GroupTest, TheLastNanosecondOfAGroupsTurnIsGivenToo) {
  Bed bed;
  VfView first{VfId{0}, 100, 2ms - 1ns, true};
  first.group = 5;
  bed.rotation.Set(first, true);
  bed.Set(1, 5);
  bed.Set(2, kNoGroup);
  for (const auto& pick : {Policy::Pick{VfId{0}, 2ms - 1ns}, {VfId{1}, 1ns}, {VfId{2}, 2ms}, {VfId{1}, 2ms - 1ns}})
    EXPECT_EQ(pick, bed.Turn());
}

TEST(GroupTest, WhoGivesUpItsTurnKeepsNoRestOfItAndTheGroupGoesOn) {
  Bed bed;
  bed.Set(0, 5);
  bed.Set(1, 5);
  const auto pick = bed.rotation.Next();
  bed.rotation.Ended(*pick, 500us);
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{1}, 1500us}));
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{1}, 500us}));
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{0}, 1500us}));
}

TEST(GroupTest, ARestOfASliceIsLostWithoutWork) {
  Bed bed;
  bed.Set(0, 5, kDefaultPriority, true, 250);
  bed.Set(1, 5);
  bed.Set(2, 5);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  bed.Set(0, 5, kDefaultPriority, false, 250);
  EXPECT_EQ(VfId{1}, bed.Turn().vf);
  bed.Set(0, 5, kDefaultPriority, true, 250);
  EXPECT_EQ(VfId{2}, bed.Turn().vf);
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{0}, 2ms}));
}

TEST(GroupTest, AnotherMemberThatLeavesChangesNothingForTheRestOfASlice) {
  Bed bed;
  bed.Set(0, 5, kDefaultPriority, true, 250);
  bed.Set(1, 5);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  bed.Set(1, kNoGroup, kDefaultPriority, false);
  bed.Set(1, 5);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{0}, 1ms}));
}

TEST(GroupTest, AGroupWithoutReadyMembersHasNoTurn) {
  Bed bed;
  bed.Set(0, 5);
  bed.Set(1, kNoGroup);
  bed.Set(0, kNoGroup, kDefaultPriority, false);
  for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(VfId{1}, bed.Turn().vf);
  bed.rotation.SetReady(VfId{1}, false);
  EXPECT_FALSE(bed.rotation.Next());
  bed.Set(0, 5, kDefaultPriority, true);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  bed.rotation.SetReady(VfId{0}, false);
  EXPECT_FALSE(bed.rotation.Next());
  bed.rotation.SetReady(VfId{0}, true);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
}

TEST(GroupTest, ANewWeightCountsInEveryClassAndGroup) {
  for (const uint8_t priority : {0, 3})
    for (const uint8_t group : {0, 63}) {
      Bed bed;
      bed.Set(0, group, priority, true, 300);
      bed.options.group_weights[group] = 300;
      bed.Apply();
      EXPECT_EQ(bed.Turn(), (Policy::Pick{VfId{0}, 6ms})) << int{priority} << " " << int{group};
    }
}

TEST(RotationTest, AnOverrunIsOwedByWhoMadeIt) {
  Bed bed;
  bed.Set(0, kNoGroup);
  bed.Set(1, kNoGroup);
  EXPECT_EQ(0ns, bed.rotation.Debt(VfId{2}));
  EXPECT_EQ(0ns, Rotation{}.Debt(VfId{0}));
  bed.Turn();
  bed.Turn(1ms);
  EXPECT_EQ(0ns, bed.rotation.Debt(VfId{0}));
  EXPECT_EQ(1ms, bed.rotation.Debt(VfId{1}));
  bed.rotation.Owe(VfId{1}, 1ns);
  EXPECT_EQ(1ms + 1ns, bed.rotation.Debt(VfId{1}));
  bed.rotation.Clear(VfId{1});
  EXPECT_EQ(0ns, bed.rotation.Debt(VfId{1}));
}

TEST(RotationTest, UnusedTimeIsNoCredit) {
  for (const uint8_t group : {uint8_t{5}, kNoGroup}) {
    Bed bed;
    bed.Set(0, group);
    bed.Set(1, kNoGroup);
    const auto pick = bed.rotation.Next();
    bed.rotation.Ended(*pick, 1us);
    EXPECT_EQ(0ns, bed.rotation.Debt(pick->vf));
  }
}

TEST(RotationTest, RoundsOfAllClassesCount) {
  Bed bed;
  bed.options.floor_percent = 25;
  bed.Apply();
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 2);
  EXPECT_EQ(0u, bed.rotation.round());
  for (int turn = 0; turn < 6; ++turn) bed.Turn();
  // One of four turns is the lower class's; the first of each is no round.
  EXPECT_EQ(4u, bed.rotation.round());
}

TEST(GroupTest, OverrunIsTheDebtOfTheVfAndOfItsGroup) {
  Bed bed;
  bed.Set(0, 0);
  bed.Set(1, 0);
  bed.Set(2, kNoGroup);
  bed.Turn(4ms);  // VF 0: 6 of 2 ms
  EXPECT_EQ(4ms, bed.rotation.Debt(VfId{0}));
  EXPECT_EQ(VfId{2}, bed.Turn().vf);
  EXPECT_EQ(VfId{2}, bed.Turn().vf);
  EXPECT_EQ(VfId{2}, bed.Turn().vf);
  EXPECT_EQ(VfId{1}, bed.Turn().vf);
  bed.RunFor(10s);
  EXPECT_NEAR(0.5, bed.Share(2), 1e-3);
}

TEST(GroupTest, ChangingTheGroupTakesTheDebtAlong) {
  Bed bed;
  bed.Set(0, kNoGroup);
  bed.Set(1, kNoGroup);
  bed.Turn(9ms);
  for (const uint8_t group : {uint8_t{3}, uint8_t{4}, kNoGroup}) {
    bed.Set(0, group);
    EXPECT_EQ(9ms, bed.rotation.Debt(VfId{0}));
  }
  bed.Set(0, kNoGroup, 2);
  EXPECT_EQ(9ms, bed.rotation.Debt(VfId{0}));
}

TEST(PriorityTest, ALowerClassGetsItsFloorWhileAHigherOneIsBusy) {
  Bed bed;
  bed.options.floor_percent = 10;
  bed.Apply();
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 3);
  bed.Set(2, kNoGroup, 1);
  bed.Set(3, kNoGroup, 0);
  bed.Set(4, kNoGroup, 0);
  bed.RunFor(60s);
  EXPECT_NEAR(0.4, bed.Share(0), 2e-3);
  EXPECT_NEAR(0.4, bed.Share(1), 2e-3);
  EXPECT_NEAR(0.1, bed.Share(2), 2e-3);
  EXPECT_NEAR(0.05, bed.Share(3), 2e-3);
  EXPECT_NEAR(0.05, bed.Share(4), 2e-3);
}

TEST(PriorityTest, ALowerClassHasTheRestOnceNobodyIsAboveIt) {
  Bed bed;
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 0);
  bed.RunFor(1s);
  bed.Set(0, kNoGroup, 3, false);
  bed.RunFor(1s);
  EXPECT_EQ(1.0, bed.Share(1));
  // The idle time of the higher class is not held against the lower one.
  bed.Set(0, kNoGroup, 3);
  bed.RunFor(10s);
  EXPECT_NEAR(0.05, bed.Share(1), 2e-3);
}

TEST(PriorityTest, AFloorIsNotSavedUp) {
  Bed bed;
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 0, false);
  bed.RunFor(100s);
  bed.Set(1, kNoGroup, 0, true);
  bed.RunFor(1s);
  EXPECT_NEAR(0.05, bed.Share(1), 0.004);
}

TEST(PriorityTest, WhatAClassIsOwedGoesWithItsWorkAndWhatItHadTooMuchStays) {
  Bed bed;
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 0);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);  // from now on the lower class is owed its floor
  bed.Set(1, kNoGroup, 0, false);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  bed.Set(1, kNoGroup, 0, true);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  EXPECT_EQ(VfId{1}, bed.Turn(10ms).vf);
  bed.Set(1, kNoGroup, 0, false);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  bed.Set(1, kNoGroup, 0, true);
  // 12 ms are 5 % of 240: more than a hundred turns of 2 ms.
  for (int turn = 0; turn < 100; ++turn) ASSERT_EQ(VfId{0}, bed.Turn().vf) << turn;
}

TEST(PriorityTest, TheFloorIsKeptToTheTurn) {
  Bed bed;
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 0);
  int low = 0;
  for (int turn = 0; turn < 2'000; ++turn) low += bed.Turn().vf == VfId{1};
  EXPECT_EQ(100, low);
}

TEST(PriorityTest, ANanosecondThatIsOwedIsEnough) {
  Bed bed;
  bed.options.base_slice = 20ns;
  bed.Apply();
  bed.Set(0, kNoGroup, 3);
  bed.Set(1, kNoGroup, 0);
  EXPECT_EQ(VfId{0}, bed.Turn().vf);
  EXPECT_EQ(VfId{1}, bed.Turn().vf);
}

TEST(PriorityTest, OfClassesThatAreOwedTheLowestGoesFirst) {
  Bed bed;
  bed.Set(3, kNoGroup, 3);
  for (const uint8_t priority : {0, 1, 2}) bed.Set(priority, kNoGroup, priority);
  for (const uint32_t vf : {3, 0, 1, 2, 3}) EXPECT_EQ(VfId{vf}, bed.Turn().vf);
}

TEST(MaxWaitTest, AGoalThatFixedSlicesUseUpLeavesTheLeast) {
  Bed bed;
  bed.options.max_wait = 16ms;
  bed.options.min_slice = 1ms;
  bed.Apply();
  VfView fixed{VfId{0}, 100, 15ms, true};
  bed.rotation.Set(fixed, true);
  bed.Set(1, kNoGroup, kDefaultPriority, true, 50);
  EXPECT_EQ(2ms, bed.rotation.BaseSlice());
  fixed.slice = 40ms;
  bed.rotation.Set(fixed, true);
  EXPECT_EQ(1ms, bed.rotation.BaseSlice());
  bed.rotation.SetReady(VfId{0}, false);
  EXPECT_EQ(20ms, bed.rotation.BaseSlice());
  bed.rotation.SetReady(VfId{0}, true);
  bed.rotation.SetReady(VfId{0}, true);
  EXPECT_EQ(1ms, bed.rotation.BaseSlice());
  fixed.slice = 15ms;
  bed.rotation.Set(fixed, true);
  EXPECT_EQ(2ms, bed.rotation.BaseSlice());
}

TEST(MaxWaitTest, TheLeastWeightAloneMakesTheLongestSlice) {
  Bed bed;
  bed.options.max_wait = 1ms;
  bed.options.max_slice = 1s;
  bed.Apply();
  bed.Set(0, kNoGroup, kDefaultPriority, true, 1);
  EXPECT_EQ(100ms, bed.rotation.BaseSlice());
  EXPECT_EQ((Policy::Pick{VfId{0}, 1ms}), bed.Turn());
}

TEST(MaxWaitTest, TheSliceFollowsTheNumberOfVfsWithWork) {
  Bed bed;
  bed.options.max_wait = 16ms;
  bed.options.min_slice = 1ms;
  bed.options.max_slice = 6ms;
  bed.Apply();
  const auto base = [&](uint32_t ready) {
    for (uint32_t vf = 0; vf < 40; ++vf) bed.Set(vf, kNoGroup, kDefaultPriority, vf < ready);
    return bed.rotation.BaseSlice();
  };
  EXPECT_EQ(6ms, base(1));
  EXPECT_EQ(4ms, base(4));
  EXPECT_EQ(2ms, base(8));
  EXPECT_EQ(1ms, base(16));
  EXPECT_EQ(1ms, base(40));
  EXPECT_EQ(6ms, base(0));
}

TEST(MaxWaitTest, WeightsAndFixedSlicesShareTheGoal) {
  Bed bed;
  bed.options.max_wait = 16ms;
  bed.options.min_slice = 100us;
  bed.Apply();
  bed.Set(0, kNoGroup, kDefaultPriority, true, 300);
  bed.Set(1, kNoGroup);
  VfView fixed{VfId{2}, 100, 4ms, true};
  bed.rotation.Set(fixed, true);
  EXPECT_EQ(3ms, bed.rotation.BaseSlice());
  Ns sum{0};
  for (int i = 0; i < 3; ++i) sum += bed.Turn().slice;
  EXPECT_EQ(16ms, sum);
}

}  // namespace
}  // namespace vgpud
