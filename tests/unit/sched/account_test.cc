// SPDX-License-Identifier: Apache-2.0
// Account and trace of a Switcher in virtual time.
#include "sched/account/account.h"

#include <gtest/gtest.h>

#include "sched/reserve.h"
#include "sched/strict.h"
#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000}};

struct Bed {
  SimWorlds worlds{kStart};
  StrictPolicy policy;
  SliceTrace trace{1024};
  Switcher switcher;
  explicit Bed(const PolicyOptions& options = {}) : policy(options), switcher(worlds, policy, {}) {
    switcher.SetTrace(&trace);
  }
  VfAccount Of(uint32_t vf) { return switcher.AccountAt(worlds.now()).Of(VfId{vf}); }
  VfTimes Times(uint32_t vf) { return switcher.AccountAt(worlds.now()).TimesOf(VfId{vf}); }
  std::vector<SliceRecord> Turns() const {
    std::vector<SliceRecord> turns;
    SliceTrace::Reader reader{trace};
    for (SliceRecord record; reader.Next(&record);) turns.push_back(record);
    return turns;
  }
};

// Counts how often it is asked for shares.
class AskedPolicy : public StrictPolicy {
 public:
  using StrictPolicy::StrictPolicy;
  uint64_t Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const override {
    ++asked;
    return StrictPolicy::Entitled(vfs, out);
  }
  mutable int asked = 0;
};

TEST(AccountTest, SharesAreAskedForOnlyWhenTheyMayHaveChanged) {
  std::vector<VfView> vfs{{.vf = VfId{0}, .runnable = true}, {.vf = VfId{1}, .runnable = true}, {.vf = VfId{2}}};
  PolicyOptions options;
  AskedPolicy policy{options};
  Account account;
  TimePoint now = kStart;
  // What VF 0 is entitled to of ten boundaries 1 ms apart, of which only the first asks.
  const auto entitled = [&](int asks) {
    account.Advance(now);
    const uint64_t before = account.Of(VfId{0}).entitled_ns;
    const int asked_before = policy.asked;
    policy.Show(vfs, now);
    for (int i = 0; i < 10; ++i) {
      account.Observe(vfs, policy, now);
      now += 1ms;
    }
    account.Advance(now);
    EXPECT_EQ(asks, policy.asked - asked_before);
    return static_cast<double>(account.Of(VfId{0}).entitled_ns - before);
  };
  EXPECT_NEAR(5e6, entitled(2), 100);  // now, and if all had work
  EXPECT_NEAR(5e6, entitled(0), 100);
  vfs[1].weight = 400;
  EXPECT_NEAR(2e6, entitled(2), 100);
  vfs[2].runnable = true;
  vfs[1].weight = 300;
  EXPECT_NEAR(2e6, entitled(1), 100);
  vfs[0].group = 4;
  EXPECT_NEAR(2e6, entitled(1), 100);
  options.group_weights[4] = 600;
  policy.SetOptions(options, now);
  EXPECT_NEAR(6e6, entitled(1), 100);
  EXPECT_NEAR(6e6, entitled(0), 100);
  account.PolicyChanged();
  EXPECT_NEAR(6e6, entitled(1), 100);
  account.Forget(VfId{2});
  EXPECT_NEAR(6e6, entitled(1), 100);
}

// --- by hand: two VFs of equal weight, of which VF 0 has the GPU ---

struct ByHand {
  StrictPolicy policy{2ms};
  Account account;
  std::vector<VfView> vfs{{.vf = VfId{0}, .runnable = true}, {.vf = VfId{1}, .runnable = true}};
  TimePoint now = kStart;

  ByHand() { Boundary(); }
  void Boundary() {
    policy.Show(vfs, now);
    account.Observe(vfs, policy, now);
  }
  void Use(GpuUse use, uint32_t vf, Ns length) {
    account.Use(use, VfId{vf}, now);
    now += length;
    account.Advance(now);
  }
  VfAccount Of(uint32_t vf) const { return account.Of(VfId{vf}); }
};

TEST(AccountTest, EachUseOfTheGpuIsCountedByItself) {
  ByHand bed;
  bed.Use(GpuUse::kSwitch, 0, 3ns);
  bed.Use(GpuUse::kRun, 0, 50ns);
  bed.Use(GpuUse::kLeave, 0, 7ns);
  EXPECT_EQ(7u, bed.account.leave_ns());
  EXPECT_EQ(50u, bed.Of(0).received_ns);
  bed.account.Ended({.vf = VfId{0}, .overrun = 5ns, .used_up = true, .forced = true, .host_delay = 2ns});
  EXPECT_EQ(0u, bed.account.leave_ns());
  EXPECT_EQ(2u, bed.account.stall_ns());
  EXPECT_EQ(55u, bed.account.run_ns());
  bed.Use(GpuUse::kIdle, 0, 11ns);
  EXPECT_EQ(3u, bed.account.switch_ns());
  EXPECT_EQ(11u, bed.account.idle_ns());
  EXPECT_EQ(71u, AllTime(bed.account));
  EXPECT_EQ(55u, bed.Of(0).received_ns);
  EXPECT_EQ(2u, bed.Of(0).host_delay_ns);
  EXPECT_EQ(71u, bed.Of(0).runnable_ns);
  EXPECT_EQ(14u, bed.Of(0).waited_ns);  // the switch and the idle time
  EXPECT_EQ(71u, bed.Of(1).waited_ns);
  EXPECT_EQ(0u, bed.Of(1).received_ns);
}

TEST(AccountTest, AHostThatDelaysLongerThanATurnTookToLeaveExplainsNoMore) {
  ByHand bed;
  bed.Use(GpuUse::kRun, 0, 50ns);
  bed.Use(GpuUse::kLeave, 0, 7ns);
  bed.account.Ended({.vf = VfId{0}, .host_delay = 9ns});
  EXPECT_EQ(7u, bed.account.stall_ns());
  EXPECT_EQ(50u, bed.Of(0).received_ns);
  EXPECT_EQ(7u, bed.Of(0).host_delay_ns);
}

TEST(AccountTest, TurnsAreCountedByWhatTheyWere) {
  ByHand bed;
  bed.account.Ended({.vf = VfId{1}, .overrun = 5ns, .used_up = true, .forced = true});
  bed.account.Ended({.vf = VfId{1}, .overrun = 3ns, .used_up = true, .hung = true});
  bed.account.Ended({.vf = VfId{1}, .overrun = 1ns, .stalled = true});
  const VfAccount account = bed.Of(1);
  EXPECT_EQ(3u, account.slices);
  EXPECT_EQ(1u, account.forced_preemptions);
  EXPECT_EQ(1u, account.hangs);
  EXPECT_EQ(1u, account.host_stalls);
  EXPECT_EQ(9u, account.overrun_ns);
  EXPECT_EQ(5u, account.worst_overrun_ns);
  EXPECT_EQ(2u, bed.account.TimesOf(VfId{1}).overrun.count());
  EXPECT_EQ(8u, bed.account.TimesOf(VfId{1}).overrun.sum_ns());
  const Account::Turn turn;
  EXPECT_EQ(0ns, turn.overrun + turn.host_delay);
  EXPECT_FALSE(turn.used_up || turn.forced || turn.hung || turn.stalled);
}

TEST(AccountTest, SingleNanosecondsAreNotLost) {
  ByHand bed;
  bed.vfs.pop_back();
  bed.vfs[0].slice = 1ns;
  bed.Boundary();
  for (int i = 0; i < 9; ++i) bed.Use(GpuUse::kRun, 0, 1ns);
  EXPECT_EQ(9u, bed.Of(0).entitled_ns);
  EXPECT_EQ(9u, bed.Of(0).received_ns);
  EXPECT_EQ(9u, bed.Of(0).runnable_ns);
  EXPECT_EQ(0u, bed.Of(0).waited_ns);
}

TEST(AccountTest, TimeThatGoesBackIsNoTime) {
  ByHand bed;
  bed.Use(GpuUse::kRun, 0, 10ns);
  bed.account.Advance(kStart);
  bed.account.Advance(bed.now);
  EXPECT_EQ(10u, bed.account.run_ns());
  EXPECT_EQ(10u, bed.Of(0).runnable_ns);
}

TEST(AccountTest, GapsThatOthersWaitedForAreAddedUp) {
  Account account;
  account.Waited(VfId{1}, 5ns);
  account.Waited(VfId{1}, 1ns);
  account.Waited(VfId{1}, -3ns);
  EXPECT_EQ(6u, account.Of(VfId{1}).anticipated_ns);
  EXPECT_EQ(0u, account.Of(VfId{0}).anticipated_ns);
  account.Switched(4ns);
  EXPECT_EQ(4u, account.switches().sum_ns());
}

TEST(AccountTest, WhoWasNeverSeenHasNothing) {
  Account account;
  account.Forget(VfId{0});
  EXPECT_EQ(0u, account.Of(VfId{0}).received_ns);
  EXPECT_EQ(0u, account.TimesOf(VfId{0}).turn_wait.count());
  account.Advance(kStart);
  account.Advance(kStart + 5ns);
  EXPECT_EQ(5u, account.idle_ns());
  for (const AccountStatistic& figure : kAccountStatistics) EXPECT_EQ(0u, VfAccount{}.*figure.value);
}

TEST(AccountTest, WhoIsForgottenIsEntitledToNothingAndLeavesItsShareToTheOthers) {
  ByHand bed;
  bed.Use(GpuUse::kRun, 0, 10ns);
  bed.account.Forget(VfId{0});
  bed.Use(GpuUse::kSwitch, 1, 10ns);
  EXPECT_EQ(0u, bed.Of(0).entitled_ns);
  EXPECT_EQ(0u, bed.Of(0).runnable_ns);
  EXPECT_EQ(15u, bed.Of(1).entitled_ns);
  EXPECT_EQ(20u, bed.Of(1).runnable_ns);
}

// Alone it has all, with all at work a half: half of what it gets is borrowed.
TEST(AccountTest, WhatIsBorrowedFollowsWhoHasWork) {
  ByHand bed;
  bed.Use(GpuUse::kRun, 0, 100ns);
  EXPECT_EQ(0u, bed.Of(0).borrowed_ns);
  bed.vfs[1].runnable = false;
  bed.Boundary();
  bed.Use(GpuUse::kRun, 0, 100ns);
  EXPECT_EQ(50u, bed.Of(0).borrowed_ns);
  bed.vfs[1].paused = true;
  bed.Boundary();
  bed.Use(GpuUse::kRun, 0, 100ns);
  EXPECT_EQ(50u, bed.Of(0).borrowed_ns);
  bed.vfs[1] = {.vf = VfId{1}, .runnable = true};
  bed.vfs[0].runnable = false;
  bed.Boundary();
  bed.Use(GpuUse::kRun, 1, 100ns);
  EXPECT_EQ(50u, bed.Of(1).borrowed_ns);
}

TEST(AccountTest, WorkThatIsGoneWithoutATurnIsNotClaimed) {
  ByHand bed;
  bed.Use(GpuUse::kRun, 0, 10ns);
  bed.vfs[1].runnable = false;
  bed.Boundary();
  EXPECT_EQ(5u, bed.Of(1).unclaimed_ns);
  EXPECT_EQ(0u, bed.Of(0).unclaimed_ns);
}

TEST(AccountTest, OnlyATurnThatWasGivenAwayDropsTheClaim) {
  struct Case {
    bool used_up, forced;
    uint64_t unclaimed;
  };
  for (const Case& c : {Case{false, false, 8}, {true, false, 0}, {false, true, 0}, {true, true, 0}}) {
    ByHand bed;
    bed.Use(GpuUse::kRun, 0, 20ns);
    bed.Use(GpuUse::kRun, 1, 4ns);  // entitled to 12 ns
    bed.account.Ended({.vf = VfId{1}, .used_up = c.used_up, .forced = c.forced});
    EXPECT_EQ(c.unclaimed, bed.Of(1).unclaimed_ns);
  }
}

TEST(AccountTest, WhoIsLeftNothingStillWantsTheGpu) {
  ReservePolicy policy{PolicyOptions{}};
  std::vector<VfView> vfs{{.vf = VfId{0}, .runnable = true, .guarantee = kWhole}, {.vf = VfId{1}, .runnable = true}};
  Account account;
  policy.Show(vfs, kStart);
  account.Observe(vfs, policy, kStart);
  account.Use(GpuUse::kRun, VfId{0}, kStart);
  account.Advance(kStart + 10ns);
  EXPECT_EQ(10u, account.Of(VfId{0}).entitled_ns);
  EXPECT_EQ(0u, account.Of(VfId{1}).entitled_ns);
  EXPECT_EQ(10u, account.Of(VfId{1}).runnable_ns);
  EXPECT_EQ(10u, account.Of(VfId{1}).waited_ns);
}

TEST(AccountTest, AWakeIsATurnBeforeWhichThereWasNoWork) {
  ByHand bed;
  bed.Use(GpuUse::kRun, 0, 10ns);
  EXPECT_EQ(1u, bed.account.TimesOf(VfId{0}).wake_wait.count());
  bed.account.Ended({.vf = VfId{0}, .used_up = true, .forced = true});
  bed.Boundary();
  bed.Use(GpuUse::kRun, 1, 10ns);
  EXPECT_EQ(1u, bed.account.TimesOf(VfId{1}).wake_wait.count());
  EXPECT_EQ(10u, bed.account.TimesOf(VfId{1}).wake_wait.sum_ns());
  bed.account.Ended({.vf = VfId{1}});  // it had no more work; there was some again at the boundary
  bed.Boundary();
  bed.Use(GpuUse::kRun, 0, 10ns);
  EXPECT_EQ(1u, bed.account.TimesOf(VfId{0}).wake_wait.count());
  EXPECT_EQ(2u, bed.account.TimesOf(VfId{0}).turn_wait.count());
  EXPECT_EQ(10u, bed.account.TimesOf(VfId{0}).turn_wait.sum_ns());
  bed.Boundary();
  bed.Use(GpuUse::kRun, 1, 10ns);
  EXPECT_EQ(2u, bed.account.TimesOf(VfId{1}).wake_wait.count());
}

TEST(AccountTest, WhoIsAloneBorrowsWhatTheOthersLeave) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  for (int i = 0; i < 3; ++i) bed.worlds.Add(100, 0ns);
  bed.worlds.Drive(bed.switcher, 100ms);
  EXPECT_EQ(100'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(75'000'000u, bed.Of(0).borrowed_ns);
}

TEST(AccountTest, NobodyBorrowsWhileAllAreBusy) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {300us, 0us};
  bed.worlds.Add(300, kEndless);
  bed.worlds.Drive(bed.switcher, 100ms);
  EXPECT_EQ(0u, bed.Of(0).borrowed_ns);
  EXPECT_EQ(0u, bed.Of(1).borrowed_ns);
}

// It comes in the first turn of 2 ms, waits for the other two, and has the GPU for 1 ms: entitled to a quarter of 5 ms.
TEST(AccountTest, WhoHasNoMoreWorkHasNoClaimToTheRestOfItsSlice) {
  Bed bed;
  for (int i = 0; i < 3; ++i) bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns).arrivals = {{1ms, 1ms}};
  bed.worlds.Drive(bed.switcher, 100ms);
  EXPECT_EQ(1'000'000u, bed.Of(3).received_ns);
  EXPECT_EQ(1'250'000u, bed.Of(3).entitled_ns);
  EXPECT_EQ(250'000u, bed.Of(3).unclaimed_ns);
  EXPECT_EQ(0u, bed.Of(0).unclaimed_ns);
}

// What it received too much, as it was served at once, is not held against it the next time.
TEST(AccountTest, WhatWasReceivedAheadIsNoClaimOfOthersLater) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns).arrivals = {{1ms, 1ms}, {11ms, 1ms}};
  bed.worlds.Drive(bed.switcher, 30ms);
  EXPECT_EQ(2'000'000u, bed.Of(1).received_ns);
  EXPECT_EQ(1'000'000u, bed.Of(1).entitled_ns);
  EXPECT_EQ(0u, bed.Of(1).unclaimed_ns);
}

TEST(AccountTest, WhoAlwaysHasWorkClaimsAllThatItIsEntitledTo) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {300us, 0us};
  bed.worlds.Add(300, kEndless);
  bed.worlds.Drive(bed.switcher, 101ms);
  EXPECT_EQ(0u, bed.Of(0).unclaimed_ns);
  EXPECT_EQ(0u, bed.Of(1).unclaimed_ns);
}

TEST(AccountTest, UnderHoldAnIdleVfClaimsItsTurns) {
  Bed bed{{.idle = WhenIdle::kHold}};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns);
  bed.worlds.Drive(bed.switcher, 21ms);
  EXPECT_EQ(0u, bed.Of(1).unclaimed_ns);
}

TEST(AccountTest, ThePausedLendNothing) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless).view.paused = true;
  bed.worlds.Drive(bed.switcher, 20ms);
  EXPECT_EQ(20'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(0u, bed.Of(0).borrowed_ns);
}

TEST(AccountTest, UnderHoldNobodyBorrows) {
  Bed bed{{.idle = WhenIdle::kHold}};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns);
  bed.worlds.Drive(bed.switcher, 20ms);
  EXPECT_EQ(10'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(0u, bed.Of(0).borrowed_ns);
}

TEST(AccountTest, EveryTurnOfABusyVfHasWaitedForTheOthers) {
  Bed bed;
  for (int i = 0; i < 3; ++i) bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 60ms);
  const VfTimes times = bed.Times(1);
  EXPECT_EQ(10u, times.turn_wait.count());
  EXPECT_EQ(4'000'000u, times.turn_wait.max_ns());
  EXPECT_EQ(2'000'000u + 9 * 4'000'000u, times.turn_wait.sum_ns());
  EXPECT_EQ(1u, times.wake_wait.count());  // only before the first had it no work
  EXPECT_EQ(bed.Of(1).waited_ns, 40'000'000u);
}

TEST(AccountTest, WorkThatComesWaitsFromTheNextBoundaryOn) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns).arrivals = {{3ms, 1ms}, {21500us, 1ms}};
  bed.worlds.Drive(bed.switcher, 40ms);
  // Work that comes in the turn of the VF before it is seen at the boundary at which it also gets its turn.
  EXPECT_EQ(2u, bed.Times(2).wake_wait.count());
  EXPECT_EQ(2u, bed.Times(2).turn_wait.count());
  EXPECT_EQ(2'000'000u, bed.Times(2).wake_wait.max_ns());
}

TEST(AccountTest, OverrunsAndSwitchesAreCountedPerTurn) {
  Bed bed;
  bed.worlds.switch_cost = 100us;
  bed.worlds.Add(100, kEndless).overruns = {300us, 0us};
  bed.worlds.Add(100, 500us);
  bed.worlds.Drive(bed.switcher, 20ms);
  const VfTimes times = bed.Times(0);
  EXPECT_EQ(bed.Of(0).slices, times.overrun.count());
  EXPECT_EQ(300'000u, times.overrun.max_ns());
  EXPECT_EQ(bed.Of(0).overrun_ns, times.overrun.sum_ns());
  EXPECT_EQ(0u, bed.Times(1).overrun.count());  // it yielded
  const Account& account = bed.switcher.AccountAt(bed.worlds.now());
  EXPECT_EQ(400'000u, account.switches().max_ns());  // 300 us until it was off, 100 us to put it away
  EXPECT_GE(account.switches().sum_ns(), account.switch_ns());
}

TEST(AccountTest, IdleTimeIsNoSwitch) {
  Bed bed;
  bed.worlds.Add(100, 1ms).arrivals = {{50ms, 1ms}};
  bed.worlds.Drive(bed.switcher, 80ms);
  EXPECT_EQ(2u, bed.Turns().size());
  EXPECT_EQ(0u, bed.switcher.AccountAt(bed.worlds.now()).switches().count());
  EXPECT_EQ(0ns, bed.Turns()[1].switch_time);
}

TEST(SwitcherTraceTest, EveryTurnIsThereOnceWithItsReasonAndItsSwitch) {
  Bed bed;
  bed.worlds.switch_cost = 50us;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 500us);
  bed.worlds.Drive(bed.switcher, 30ms);
  bed.switcher.Revoke(bed.worlds.now());
  bed.worlds.hung_in = WsState::kDrain;
  bed.worlds.Drive(bed.switcher, 30ms);
  const auto turns = bed.Turns();
  ASSERT_GE(turns.size(), 8u);
  uint64_t of_vf0 = 0;
  size_t revoked = 0;
  size_t hung = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(i, turns[i].sequence);
    EXPECT_EQ(bed.worlds.turns()[i].start, turns[i].start);
    if (i > 0) {
      EXPECT_EQ(turns[i - 1].end, turns[i].start - turns[i].switch_time);
      EXPECT_GE(turns[i].round, turns[i - 1].round);
    }
    if (turns[i].vf == VfId{0}) of_vf0 += static_cast<uint64_t>((turns[i].end - turns[i].start).count());
    revoked += turns[i].reason == TurnEnd::kRevoke;
    hung += turns[i].reason == TurnEnd::kHang;
    if (turns[i].vf == VfId{1}) {
      EXPECT_EQ(TurnEnd::kYield, turns[i].reason);
    }
  }
  EXPECT_EQ(1u, revoked + hung);  // the revoked turn hung: that says more
  EXPECT_EQ(1u, hung);
  EXPECT_LE(of_vf0, bed.Of(0).received_ns);
}

}  // namespace
}  // namespace vgpud
