// SPDX-License-Identifier: Apache-2.0
// Turns that a VF with wake_first takes early, step by step.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "sched/registry.h"
#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1}};
constexpr Wheel::Pace kPace{2ms};

// Entries 0..count-1 of 2 ms each, all ready.
Wheel Of(uint32_t count) {
  Wheel wheel;
  for (uint32_t id = 0; id < count; ++id) wheel.Set(id, 100, 0ns, true);
  return wheel;
}

TEST(WakeFirstWheelTest, AnEarlyTurnIsTakenOffTheNextOneOfItsPlace) {
  Wheel wheel = Of(3);
  EXPECT_EQ(0u, wheel.Next(kPace).id);
  wheel.Wake(2);
  const auto early = wheel.NextWoken(kPace);
  ASSERT_TRUE(early);
  EXPECT_EQ(2u, early->id);
  EXPECT_EQ(2ms, early->slice);
  wheel.TakeEarly(2, 500us, kPace);
  EXPECT_EQ(500us, wheel.Debt(2));
  EXPECT_FALSE(wheel.NextWoken(kPace));
  EXPECT_EQ(1u, wheel.Next(kPace).id);
  const auto turn = wheel.Next(kPace);
  EXPECT_EQ(2u, turn.id);
  EXPECT_EQ(1500us, turn.slice);
  EXPECT_EQ(0ns, wheel.Debt(2));
  wheel.Next(kPace);
  wheel.Next(kPace);
  EXPECT_EQ(2ms, wheel.Next(kPace).slice);
}

TEST(WakeFirstWheelTest, WhoAsleepIsPassedByOwesNothingAnyMore) {
  Wheel wheel = Of(3);
  wheel.Next(kPace);
  wheel.Wake(1);
  wheel.NextWoken(kPace);
  wheel.TakeEarly(1, 2ms, kPace);
  wheel.SetReady(1, false);
  EXPECT_EQ(2ms, wheel.Debt(1));
  EXPECT_EQ(2u, wheel.Next(kPace).id);
  EXPECT_EQ(0ns, wheel.Debt(1));
  wheel.SetReady(1, true);
  wheel.Wake(1);
  EXPECT_EQ(2ms, wheel.NextWoken(kPace)->slice);
}

TEST(WakeFirstWheelTest, AWholeSliceTakenEarlyIsAPlacePassedOver) {
  Wheel wheel = Of(2);
  wheel.Wake(1);
  wheel.NextWoken(kPace);
  wheel.TakeEarly(1, 2ms, kPace);
  EXPECT_EQ(0u, wheel.Next(kPace).id);
  EXPECT_EQ(0u, wheel.Next(kPace).id);
  EXPECT_EQ(1u, wheel.round());
  EXPECT_EQ(1u, wheel.Next(kPace).id);
}

TEST(WakeFirstWheelTest, AllWokenEarlyFindTheirNextTurnsAtOnce) {
  Wheel wheel = Of(3);
  for (uint32_t id = 0; id < 3; ++id) {
    wheel.Wake(id);
    EXPECT_EQ(id, wheel.NextWoken(kPace)->id);
    wheel.TakeEarly(id, 2ms, kPace);
  }
  const auto turn = wheel.Next(kPace);
  EXPECT_EQ(0u, turn.id);
  EXPECT_EQ(2ms, turn.slice);
  EXPECT_EQ(0ns, wheel.Debt(1));
}

TEST(WakeFirstWheelTest, ATurnForNothingCostsAnEighthOfASlice) {
  Wheel wheel = Of(2);
  wheel.Next(kPace);
  for (int i = 0; i < Wheel::kEarlyTurns; ++i) {
    wheel.Wake(1);
    const auto early = wheel.NextWoken(kPace);
    ASSERT_TRUE(early) << i;
    EXPECT_EQ(2ms - i * 250us, early->slice);
    wheel.TakeEarly(1, 1ns, kPace);
  }
  wheel.Wake(1);
  EXPECT_FALSE(wheel.NextWoken(kPace));
  EXPECT_EQ(2ms, wheel.Debt(1));
}

TEST(WakeFirstWheelTest, WhoIsInDebtWaitsForItsPlace) {
  Wheel wheel = Of(2);
  wheel.Owe(1, 1ns);
  wheel.Wake(1);
  EXPECT_FALSE(wheel.NextWoken(kPace));
  EXPECT_FALSE(wheel.AnyWoken());
  EXPECT_EQ(0u, wheel.Next(kPace).id);
  EXPECT_EQ(2ms - 1ns, wheel.Next(kPace).slice);
}

TEST(WakeFirstWheelTest, WhoFallsAsleepOrHasHadItsTurnIsNotWoken) {
  Wheel wheel = Of(2);
  wheel.Wake(0);
  wheel.Wake(1);
  wheel.SetReady(1, false);
  wheel.Next(kPace);
  EXPECT_FALSE(wheel.AnyWoken());
  wheel.Wake(0);
  wheel.Wake(0, false);
  EXPECT_FALSE(wheel.AnyWoken());
}

TEST(WakeFirstWheelTest, TheWokenGoInOrderFromWhereTheWheelIs) {
  Wheel wheel = Of(4);
  wheel.Next(kPace);
  wheel.Next(kPace);
  for (const uint32_t id : {0u, 1u, 3u}) wheel.Wake(id);
  EXPECT_EQ(3u, wheel.NextWoken(kPace)->id);
  EXPECT_EQ(0u, wheel.NextWoken(kPace)->id);
  EXPECT_EQ(1u, wheel.NextWoken(kPace)->id);
}

TEST(WakeFirstWheelTest, ClearedBooksAreEmpty) {
  Wheel wheel = Of(2);
  wheel.TakeEarly(1, 2ms, kPace);
  wheel.Owe(1, 1ms);
  EXPECT_EQ(3ms, wheel.Debt(1));
  wheel.Clear(1);
  EXPECT_EQ(0ns, wheel.Debt(1));
}

// Turns of a policy, by the VFs that are shown runnable each time.
struct Turns {
  std::unique_ptr<Policy> policy;
  std::vector<VfView> vfs;
  TimePoint now = kStart;

  explicit Turns(std::string_view name, size_t count, PolicyOptions options = {}) {
    policy = *MakePolicy(name, options);
    for (uint32_t i = 0; i < count; ++i) vfs.push_back({.vf = VfId{i}, .runnable = true});
  }
  // "<vf>:<slice in us>", then it has used `used` of it, or all.
  std::string Take(Ns used = -1ns) {
    const auto pick = policy->Next(vfs, now);
    if (!pick) return "nobody";
    const Ns time = used < 0ns ? pick->slice : used;
    now += time;
    policy->Ended(*pick, time, now);
    return fmt::format("{}:{}", Raw(pick->vf), pick->slice / 1us);
  }
  std::string Take(int turns) {
    std::string all = Take();
    while (--turns > 0) all += ' ' + Take();
    return all;
  }
};

TEST(WakeFirstTest, AVfThatGetsWorkIsNextAndHasNoMoreThanItsSlicePerRound) {
  for (const char* policy : {"strict", "relaxed", "reserve"}) {
    Turns turns(policy, 4);
    turns.vfs[3].wake_first = true;
    turns.vfs[3].runnable = false;
    EXPECT_EQ("0:2000", turns.Take(1)) << policy;
    turns.vfs[3].runnable = true;
    EXPECT_EQ("3:2000 1:2000 2:2000 0:2000 1:2000 2:2000 3:2000", turns.Take(7)) << policy;
  }
}

TEST(WakeFirstTest, WithoutItEverybodyWaitsForItsPlace) {
  Turns turns("strict", 4);
  turns.vfs[3].runnable = false;
  EXPECT_EQ("0:2000", turns.Take(1));
  turns.vfs[3].runnable = true;
  EXPECT_EQ("1:2000 2:2000 3:2000", turns.Take(3));
}

TEST(WakeFirstTest, TakenBackItIsAnOrdinaryVf) {
  Turns turns("strict", 4);
  turns.vfs[3].wake_first = true;
  turns.vfs[3].runnable = false;
  turns.Take(1);
  turns.vfs[3].runnable = true;
  turns.policy->Show(turns.vfs, turns.now);
  turns.vfs[3].wake_first = false;
  EXPECT_EQ("1:2000 2:2000 3:2000", turns.Take(3));
}

TEST(WakeFirstTest, WhatIsOverrunInAnEarlyTurnIsDebt) {
  Turns turns("strict", 3);
  turns.vfs[2].wake_first = true;
  turns.vfs[2].runnable = false;
  turns.Take(1);
  turns.vfs[2].runnable = true;
  EXPECT_EQ("2:2000", turns.Take(2500us));
  EXPECT_EQ(2500us, turns.policy->Debt(VfId{2}));
  turns.vfs[2].runnable = false;
  EXPECT_EQ("1:2000 0:2000", turns.Take(2));
  EXPECT_EQ(500us, turns.policy->Debt(VfId{2}));
  turns.vfs[2].runnable = true;
  EXPECT_EQ("1:2000 2:1500", turns.Take(2));  // no early turn for who owes
}

TEST(WakeFirstTest, AMoreImportantClassGoesFirst) {
  Turns turns("strict", 3);
  turns.vfs[0].priority = turns.vfs[1].priority = 2;
  turns.vfs[2].wake_first = true;
  turns.vfs[2].runnable = false;
  turns.Take(1);
  turns.vfs[2].runnable = true;
  EXPECT_EQ("1:2000", turns.Take(1));
}

TEST(WakeFirstTest, AMemberOfAGroupTakesItFromItsGroupToo) {
  Turns turns("strict", 4);
  for (const size_t member : {1, 2, 3}) turns.vfs[member].group = 0;
  turns.vfs[3].wake_first = true;
  turns.vfs[3].runnable = false;
  EXPECT_EQ("1:2000", turns.Take(1));  // groups come before VFs without one
  turns.vfs[3].runnable = true;
  EXPECT_EQ("3:2000", turns.Take(1));
  // The group's next turn has been taken, and so has the member's.
  EXPECT_EQ("0:2000 0:2000 2:2000 0:2000 1:2000 0:2000 2:2000 0:2000 3:2000", turns.Take(9));
}

TEST(WakeFirstTest, AMemberIsFirstWithinAGroupThatIsAlone) {
  Turns turns("strict", 3);
  for (VfView& vf : turns.vfs) vf.group = 5;
  turns.vfs[2].wake_first = true;
  turns.vfs[2].runnable = false;
  EXPECT_EQ("0:2000", turns.Take(1));
  turns.vfs[2].runnable = true;
  EXPECT_EQ("2:2000 1:2000 0:2000 1:2000 2:2000", turns.Take(5));
}

TEST(WakeFirstTest, SeveralMembersWakeUpOneAfterTheOther) {
  PolicyOptions options;
  options.group_weights[5] = 1000;
  Turns turns("strict", 4, options);
  for (const size_t member : {1, 2, 3}) turns.vfs[member].group = 5;
  for (const size_t member : {2, 3}) turns.vfs[member].wake_first = !(turns.vfs[member].runnable = false);
  EXPECT_EQ("1:2000", turns.Take(1));
  turns.vfs[2].runnable = turns.vfs[3].runnable = true;
  EXPECT_EQ("2:2000 3:2000", turns.Take(2));
}

TEST(WakeFirstTest, WhoIsAloneHasOrdinaryTurns) {
  Turns turns("strict", 1);
  turns.vfs[0].wake_first = true;
  EXPECT_EQ("0:2000", turns.Take(1));
  EXPECT_EQ(0ns, turns.policy->Debt(VfId{0}));
  EXPECT_EQ(0u, turns.policy->round());
  turns.vfs[0].group = 1;
  EXPECT_EQ("0:2000", turns.Take(1));
  EXPECT_EQ(0ns, turns.policy->Debt(VfId{0}));
}

TEST(WakeFirstTest, ANewPolicyTakesOverWhatWasTakenEarly) {
  Turns turns("strict", 3);
  turns.vfs[2].wake_first = true;
  turns.vfs[2].runnable = false;
  turns.Take(1);
  turns.vfs[2].runnable = true;
  turns.Take(1500us);
  const auto next = *MakePolicy("strict", PolicyOptions{});
  next->TakeOver(*turns.policy, turns.now);
  EXPECT_EQ(1500us, next->Debt(VfId{2}));
}

// Waits of a VF that sleeps between its bursts, beside `busy` that always have work, and what it may wait.
struct Bursty {
  SimWorlds worlds{kStart};
  std::unique_ptr<Policy> policy;
  Switcher switcher;
  Bursty(const char* name, bool wake_first, int busy)
      : policy(*MakePolicy(name, PolicyOptions{})), switcher(worlds, *policy, {}) {
    for (int i = 0; i < busy; ++i) worlds.Add(100, kEndless);
    auto& vf = worlds.Add(100, 0ns);
    vf.view.wake_first = wake_first;
    for (int i = 0; i < 400; ++i) vf.arrivals.push_back({i * 20ms + i * 37us, 300us});
    worlds.Drive(switcher, 9s);
  }
  Ns Worst() { return worlds.vf(worlds.size() - 1).worst_wait; }
  std::optional<Ns> Bound() {
    std::vector<VfView> vfs;
    for (size_t i = 0; i < worlds.size(); ++i) vfs.push_back(worlds.vf(i).view);
    return policy->WakeBound(vfs, vfs.back().vf);
  }
};

TEST(WakeFirstTest, AShortBurstBesideLongOnesWaitsForOneTurnInsteadOfSeven) {
  Bursty ordinary("strict", false, 7), first("strict", true, 7);
  EXPECT_EQ(14ms, ordinary.Bound());
  EXPECT_EQ(2ms, first.Bound());
  EXPECT_LE(first.Worst(), 2ms);
  EXPECT_GT(first.Worst(), 1900us);
  EXPECT_LE(ordinary.Worst(), 14ms);
  EXPECT_GT(ordinary.Worst(), 13ms);
  // Nobody has less for it.
  for (size_t i = 0; i < 7; ++i)
    EXPECT_NEAR(double(ordinary.worlds.vf(i).served.count()), double(first.worlds.vf(i).served.count()), 2.1e6);
  EXPECT_EQ(ordinary.worlds.vf(7).served, first.worlds.vf(7).served);
}

struct BoundCase {
  const char* what;
  std::vector<VfView> others;
  VfView vf;
  PolicyOptions options;
  std::optional<Ns> bound;
};

TEST(WakeBoundTest, EveryRow) {
  const VfView plain{};
  const VfView first{.wake_first = true};
  const VfView lower{.slice = 10ms, .priority = 0};
  const PolicyOptions hold{.idle = WhenIdle::kHold};
  const BoundCase cases[] = {
      {"alone", {}, plain, {}, 0ns},
      {"alone, first", {}, first, {}, 0ns},
      {"everybody once", {plain, {.slice = 5ms}, {.weight = 300}}, plain, {}, 13ms},
      {"the longest turn", {plain, {.slice = 5ms}, {.weight = 300}}, first, {}, 6ms},
      {"who may come twice", {plain, first}, plain, {}, 6ms},
      {"others who wake up", {{.slice = 7ms}, first, first}, first, {}, 11ms},
      {"paused", {{.paused = true}, plain}, plain, {}, 2ms},
      {"a lower class and its floor", {plain, lower}, plain, {}, Ns{22ms} * 100 / 95},
      {"a lower class, first", {plain, lower}, first, {}, Ns{20ms} * 100 / 95},
      {"a more important class", {{.priority = 2}}, plain, {}, std::nullopt},
      {"a group", {{.group = 1}}, plain, {}, std::nullopt},
      {"all in one group", {{.group = 1}}, {.group = 1}, {}, 2ms},
      {"turns are held", {first, plain}, first, hold, 4ms},
  };
  for (const BoundCase& c : cases) {
    std::vector<VfView> vfs = c.others;
    vfs.push_back(c.vf);
    for (uint32_t i = 0; i < vfs.size(); ++i) vfs[i].vf = VfId{i};
    EXPECT_EQ(c.bound, StrictPolicy(c.options).WakeBound(vfs, vfs.back().vf)) << c.what;
  }
}

TEST(WakeBoundTest, OthersPromiseNone) {
  const std::vector<VfView> vfs{{.vf = VfId{0}}, {.vf = VfId{1}}};
  for (const char* policy : {"relaxed", "reserve"}) EXPECT_FALSE((*MakePolicy(policy, {}))->WakeBound(vfs, VfId{0}));
  EXPECT_FALSE((*MakePolicy("strict", {}))->WakeBound(vfs, VfId{2}));
}

}  // namespace
}  // namespace vgpud
