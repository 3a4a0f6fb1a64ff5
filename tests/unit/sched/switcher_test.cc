// SPDX-License-Identifier: Apache-2.0
#include "sched/switcher.h"

#include <gtest/gtest.h>

#include "sched/relaxed.h"
#include "sched/reserve.h"
#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000}};

struct Bed {
  SimWorlds worlds{kStart};
  StrictPolicy policy{2ms};
  Switcher switcher;
  explicit Bed(Switcher::Options options = {}) : switcher(worlds, policy, options) {}
  VfAccount Of(uint32_t vf) { return switcher.AccountAt(worlds.now()).Of(VfId{vf}); }
};

TEST(SwitcherTest, TwoBusyVfsTakeTurns) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(300, kEndless);
  bed.worlds.Drive(bed.switcher, 80ms);
  EXPECT_EQ(20'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(60'000'000u, bed.Of(1).received_ns);
  EXPECT_EQ(20'000'000u, bed.Of(0).entitled_ns);
  EXPECT_EQ(60'000'000u, bed.Of(1).entitled_ns);
  EXPECT_EQ(60'000'000u, bed.Of(0).waited_ns);
  EXPECT_EQ(10u, bed.Of(0).forced_preemptions);
}

TEST(SwitcherTest, AVfWithoutWorkGivesUpTheRestOfItsTurn) {
  Bed bed;
  bed.worlds.Add(100, 500us);
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 3ms);
  ASSERT_GE(bed.worlds.turns().size(), 2u);
  EXPECT_EQ(kStart + 500us, bed.worlds.turns()[1].start);
  EXPECT_EQ(VfId{1}, bed.worlds.turns()[1].vf);
  EXPECT_EQ(0u, bed.Of(0).forced_preemptions);
}

TEST(SwitcherTest, IdleGraceLetsLateWorkKeepTheTurn) {
  Bed bed;
  PolicyOptions options;
  options.idle_grace = 50us;
  bed.policy.SetOptions(options, kStart);
  bed.worlds.Add(100, 500us).arrivals = {{540us, 200us}};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 5ms);
  EXPECT_EQ(kStart + 740us + 50us, bed.worlds.turns()[1].start);
}

TEST(SwitcherTest, NobodyRunnableLeavesTheGpuOffUntilWorkComes) {
  Bed bed;
  bed.worlds.Add(100, 0ns).arrivals = {{7ms, 1ms}};
  bed.worlds.Drive(bed.switcher, 20ms);
  ASSERT_EQ(1u, bed.worlds.turns().size());
  EXPECT_EQ(kStart + 7ms, bed.worlds.turns()[0].start);
  EXPECT_EQ(WsState::kOff, bed.switcher.state());
  EXPECT_EQ(1'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(1'000'000u, bed.Of(0).entitled_ns);
}

TEST(SwitcherTest, RevokeEndsTheTurnEarly) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 500us);
  bed.switcher.Revoke(bed.worlds.now());
  EXPECT_EQ(WsState::kDrain, bed.switcher.state());
  bed.worlds.Drive(bed.switcher, 1us);
  ASSERT_EQ(2u, bed.worlds.turns().size());
  EXPECT_EQ(kStart + 500us, bed.worlds.turns()[0].end);
}

TEST(SwitcherTest, AChangeOfWeightTakesEffectAtTheNextTurn) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 1ms);
  bed.worlds.vf(0).view.weight = 300;
  bed.worlds.Drive(bed.switcher, 20ms);
  EXPECT_EQ(2ms, bed.worlds.turns()[0].end - bed.worlds.turns()[0].start);
  EXPECT_EQ(6ms, bed.worlds.turns()[2].end - bed.worlds.turns()[2].start);
}

TEST(SwitcherTest, OverrunIsCountedAndOwed) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {300us, 0us};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 10ms);
  EXPECT_EQ(2300us, bed.worlds.turns()[0].end - bed.worlds.turns()[0].start);
  EXPECT_EQ(1700us, bed.worlds.turns()[2].end - bed.worlds.turns()[2].start);
  EXPECT_EQ(300'000u, bed.Of(0).worst_overrun_ns);
  EXPECT_EQ(0u, bed.Of(1).worst_overrun_ns);
}

struct HangCase {
  const char* name;
  std::optional<WsState> hung_in;
  int flrs;
  Ns took;  // from the end of the slice to the next VF's start
};
class HangTest : public testing::TestWithParam<HangCase> {};

TEST_P(HangTest, TheNextVfRunsWithinTheDeadlines) {
  const HangCase& c = GetParam();
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 1ms);
  bed.worlds.hung_in = c.hung_in;
  bed.worlds.Drive(bed.switcher, 30ms);
  EXPECT_EQ(c.flrs, bed.worlds.flrs);
  EXPECT_EQ(VfId{1}, bed.worlds.turns()[1].vf);
  EXPECT_EQ(kStart + 2ms + c.took, bed.worlds.turns()[1].start);
  EXPECT_EQ(0, bed.worlds.parks);
}
INSTANTIATE_TEST_SUITE_P(, HangTest,
                         testing::ValuesIn(std::vector<HangCase>{{"healthy", std::nullopt, 0, 0ms},
                                                                 {"never_drains", WsState::kDrain, 1, 10ms},
                                                                 {"save_hangs", WsState::kSave, 1, 5ms}}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(SwitcherTest, WhatTheHostDelaysIsNeitherOwedNorReceivedButCounted) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {300us, 0us};
  bed.worlds.Add(100, kEndless);
  bed.worlds.host_delay = 300us;
  bed.worlds.Drive(bed.switcher, 8300us);
  EXPECT_EQ(2300us, bed.worlds.turns()[0].end - bed.worlds.turns()[0].start);
  EXPECT_EQ(2ms, bed.worlds.turns()[2].end - bed.worlds.turns()[2].start);
  EXPECT_EQ(0u, bed.Of(0).overrun_ns);
  EXPECT_EQ(300'000u, bed.Of(0).host_delay_ns);
  EXPECT_EQ(4'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(4'000'000u, bed.Of(1).received_ns);
  EXPECT_EQ(300'000u, bed.switcher.AccountAt(bed.worlds.now()).stall_ns());
}

TEST(SwitcherTest, OnlyTheDelayOfAnOverrunIsForgiven) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {500us, 0us};
  bed.worlds.Add(100, kEndless);
  bed.worlds.host_delay = 300us;
  bed.worlds.Drive(bed.switcher, 10ms);
  EXPECT_EQ(200'000u, bed.Of(0).overrun_ns);
  EXPECT_EQ(1800us, bed.worlds.turns()[2].end - bed.worlds.turns()[2].start);
}

// It may make itself wait: by its own other threads, or its virtual machine's.
TEST(SwitcherTest, AVfThatIsAlwaysDelayedRepaysWhatIsBeyondItsAllowance) {
  Bed bed{{.host_delay_percent = 25, .host_delay_most = 4ms}};
  bed.worlds.Add(100, kEndless).overruns = {2ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.host_delay = 1h;
  bed.worlds.Drive(bed.switcher, 1s);
  const VfAccount delayed = bed.Of(0), other = bed.Of(1);
  EXPECT_GE(delayed.host_delay_ns, 10'000'000u);
  EXPECT_LE(delayed.host_delay_ns, 4'000'000u + delayed.received_ns / 4 + 1'000'000u);
  EXPECT_NEAR(static_cast<double>(delayed.received_ns), static_cast<double>(other.received_ns), 8e6);
}

TEST(SwitcherTest, ExcusedTurnsAreRepaidAndRunOut) {
  Bed bed{{.excuse_limit = 50ms, .excuses = {.most = 65ms, .percent = 1}, .hang_limit = 100}};
  bed.worlds.Add(100, kEndless).overruns = {30ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.excused = true;
  bed.worlds.host_delay = 1h;
  bed.worlds.Drive(bed.switcher, 400ms);
  EXPECT_EQ(2u, bed.Of(0).host_stalls);
  EXPECT_EQ(0u, bed.Of(0).host_delay_ns);
  EXPECT_EQ(bed.Of(0).slices - 2, bed.Of(0).hangs) << "the third and all after it";
  EXPECT_GE(bed.Of(0).hangs, 1u);
  bed.switcher.Reinstate(VfId{0});
  bed.worlds.Drive(bed.switcher, 200ms);
  EXPECT_GE(bed.Of(0).host_stalls, 3u);
}

// A busy host keeps executors off their cores for a little longer than they have, hundreds of times a minute.
TEST(SwitcherTest, ManyShortExcusesAreNoHang) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {12ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.excused = true;
  bed.worlds.Drive(bed.switcher, 10s);
  EXPECT_EQ(0u, bed.Of(0).hangs);
  EXPECT_GE(bed.Of(0).host_stalls, 150u);
  EXPECT_NEAR(static_cast<double>(bed.Of(0).received_ns), static_cast<double>(bed.Of(1).received_ns), 2e7)
      << "each is repaid";
}

// Others wait for a quarter of the time in the long run.
TEST(SwitcherTest, ExcusesAreAQuarterOfTheTime) {
  Bed bed{{.excuses = {.most = 200ms}, .hang_limit = 1000}};
  bed.worlds.Add(100, kEndless).overruns = {40ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.excused = true;
  bed.worlds.Drive(bed.switcher, 10s);
  EXPECT_GE(bed.Of(0).hangs, 1u);
  EXPECT_GE(bed.Of(0).host_stalls, 10u);
  const uint64_t over_ms = bed.Of(0).overrun_ns / 1'000'000;
  EXPECT_LE(over_ms, 200 + 2500 + 40 + 10 * bed.Of(0).hangs) << "a kill takes the timeout";
  EXPECT_GE(over_ms, 2000u);
}

// Nobody waits for longer than the timeout, however long it takes, and nobody is killed.
TEST(SwitcherTest, WhoHasNoCoreAtTheTimeoutIsLeftBehind) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {500ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.left_behind = true;
  bed.worlds.excused = true;
  bed.worlds.host_delay = 1h;
  bed.worlds.Drive(bed.switcher, 10s);
  EXPECT_EQ(0, bed.worlds.flrs);
  EXPECT_EQ(0u, bed.Of(0).hangs);
  EXPECT_EQ(0u, bed.Of(0).host_stalls);
  EXPECT_EQ(12ms, bed.worlds.turns()[0].end - bed.worlds.turns()[0].start);
  EXPECT_LE(bed.worlds.vf(1).worst_wait, 12ms);
  EXPECT_GE(bed.Of(0).host_delay_ns, 40'000'000u);
  EXPECT_NEAR(static_cast<double>(bed.Of(0).received_ns), static_cast<double>(bed.Of(1).received_ns), 3e7)
      << "what is beyond the allowance is repaid";
}

TEST(SwitcherTest, HangsAreChargedToTheVfThatHung) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.hung_in = WsState::kDrain;
  bed.worlds.Drive(bed.switcher, 100ms);
  EXPECT_EQ(1u, bed.Of(0).hangs);
  EXPECT_EQ(10'000'000u, bed.Of(0).worst_overrun_ns);
  EXPECT_NEAR(50e6, static_cast<double>(bed.Of(0).received_ns), 2e6);  // repaid in full
}

TEST(SwitcherTest, AVfThatTheHostGivesNoCoreIsWaitedFor) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {35ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.excused = true;
  bed.worlds.Drive(bed.switcher, 40ms);
  EXPECT_EQ(0, bed.worlds.flrs);
  EXPECT_EQ(1u, bed.Of(0).host_stalls);
  EXPECT_EQ(kStart + 37ms, bed.worlds.turns()[1].start);
}

TEST(SwitcherTest, AnExcuseIsGoodForASecond) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.excused = true;
  bed.worlds.hung_in = WsState::kDrain;
  bed.worlds.Drive(bed.switcher, 2s);
  EXPECT_EQ(1, bed.worlds.flrs);
  EXPECT_EQ(kStart + 2ms + 1s, bed.worlds.turns()[1].start);
}

TEST(SwitcherTest, ThreeHangsInAMinuteParkTheVf) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  for (int hang = 1; hang <= 3; ++hang) {
    EXPECT_EQ(0, bed.worlds.parks);
    while (bed.switcher.state() != WsState::kRun || bed.switcher.current() != VfId{0}) {
      bed.worlds.Drive(bed.switcher, 100us);
    }
    bed.worlds.hung_in = WsState::kDrain;
    bed.worlds.Drive(bed.switcher, 15ms);
  }
  EXPECT_EQ(1, bed.worlds.parks);
  const auto before = bed.Of(0).received_ns;
  bed.worlds.Drive(bed.switcher, 100ms);
  EXPECT_EQ(before, bed.Of(0).received_ns);
  EXPECT_EQ(WsState::kRun, bed.switcher.state());
}

TEST(SwitcherTest, HangsFarApartDoNotPark) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  for (int hang = 0; hang < 5; ++hang) {
    bed.worlds.hung_in = WsState::kDrain;
    bed.worlds.Drive(bed.switcher, 31s);
  }
  EXPECT_EQ(5, bed.worlds.flrs);
  EXPECT_EQ(0, bed.worlds.parks);
}

TEST(SwitcherTest, AResetThatHangsParksTheVf) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.hung_in = WsState::kDrain;
  bed.worlds.flr_hangs = true;
  bed.worlds.Drive(bed.switcher, 2s);
  EXPECT_EQ(1, bed.worlds.parks);
  EXPECT_EQ(VfId{1}, bed.worlds.turns().back().vf);
}

TEST(SwitcherTest, AnImpossibleEventResetsTheVfOnTheGpu) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 1ms);
  bed.switcher.Step(WsEvent::kLoaded, bed.worlds.now());
  EXPECT_EQ(WsState::kFlr, bed.switcher.state());
  EXPECT_EQ(1u, bed.switcher.impossible_events());
  bed.worlds.Drive(bed.switcher, 10ms);
  EXPECT_EQ(WsState::kRun, bed.switcher.state());
}

TEST(SwitcherTest, ForgottenVfsStartFromZero) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {5ms};
  bed.worlds.Drive(bed.switcher, 4ms);
  bed.worlds.at_boundary = [&] {
    bed.switcher.Forget(VfId{0});
    bed.worlds.vf(0).work = 0ns;
  };
  bed.worlds.Drive(bed.switcher, 10ms);
  EXPECT_EQ(0u, bed.Of(0).received_ns);
  EXPECT_EQ(0ns, bed.policy.Debt(VfId{0}));
}

struct RelaxedBed {
  SimWorlds worlds{kStart};
  RelaxedPolicy policy{2ms};
  Switcher switcher;
  explicit RelaxedBed(Switcher::Options options = {}) : switcher(worlds, policy, options) {}
  VfAccount Of(uint32_t vf) { return switcher.AccountAt(worlds.now()).Of(VfId{vf}); }
  Ns Length(size_t turn) { return worlds.turns()[turn].end - worlds.turns()[turn].start; }
};

TEST(RelaxedTest, TheRunningKernelMayFinishAndIsOwed) {
  RelaxedBed bed;
  bed.worlds.Add(100, kEndless).overruns = {15ms, 0ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 60ms);
  EXPECT_EQ(TimePoint::max(), bed.worlds.last_deadline);
  EXPECT_EQ(17ms, bed.Length(0));
  EXPECT_EQ(0, bed.worlds.flrs);
  EXPECT_EQ(0u, bed.Of(0).forced_preemptions);
  EXPECT_EQ(15'000'000u, bed.Of(0).worst_overrun_ns);
  for (size_t i = 1; i <= 8; ++i) EXPECT_EQ(VfId{1}, bed.worlds.turns()[i].vf) << i;
  EXPECT_EQ(VfId{0}, bed.worlds.turns()[9].vf);
  EXPECT_EQ(1ms, bed.Length(9));
}

TEST(RelaxedTest, AKernelThatDoesNotFinishIsEndedByForceInTheEnd) {
  RelaxedBed bed{{.finish_timeout = 50ms}};
  bed.worlds.Add(100, kEndless).overruns = {kEndless, 0ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 60ms);
  EXPECT_EQ(kStart + 2ms + 50ms, bed.worlds.turns()[1].start);
  EXPECT_EQ(1u, bed.Of(0).forced_preemptions);
}

TEST(RelaxedTest, RevokeDoesNotWaitForTheKernel) {
  RelaxedBed bed;
  bed.worlds.Add(100, kEndless).overruns = {1s, 0ms};
  bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 5ms);
  EXPECT_EQ(WsState::kFinish, bed.switcher.state());
  bed.switcher.Revoke(bed.worlds.now());
  EXPECT_EQ(WsState::kDrain, bed.switcher.state());
  bed.worlds.Drive(bed.switcher, 1us);
  EXPECT_EQ(kStart + 5ms, bed.worlds.turns()[1].start);
}

TEST(RelaxedTest, BeforeAPolicyWithForceAKernelHasItsSliceAtMost) {
  for (const Ns asked_at : {1ms, 5ms}) {
    RelaxedBed bed;
    bed.worlds.Add(100, kEndless).overruns = {5s, 0ms};
    bed.worlds.Add(100, kEndless);
    StrictPolicy next{2ms};
    bool set = false;
    bed.worlds.Drive(bed.switcher, asked_at);
    bed.switcher.ExpectForce(bed.worlds.now());
    bed.worlds.at_boundary = [&] {
      if (!std::exchange(set, true)) bed.switcher.SetPolicy(next, bed.worlds.now());
    };
    EXPECT_EQ(asked_at == 1ms ? WsState::kRun : WsState::kDrain, bed.switcher.state());
    bed.worlds.Drive(bed.switcher, 2ms - 1ns);
    EXPECT_NE(WsState::kFinish, bed.switcher.state());
  }
}

TEST(SwitcherTest, AnotherPolicyTakesOverWithTheDebtsAndTheRounds) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {3ms, 0ms};
  bed.worlds.Add(100, kEndless);
  StrictPolicy other{1ms};
  bool changed = false;
  uint64_t round_before = 0;
  bed.worlds.Drive(bed.switcher, 1ms);
  bed.worlds.at_boundary = [&] {
    if (changed) return;
    changed = true;
    round_before = bed.policy.round();
    EXPECT_EQ(3ms, bed.policy.Debt(VfId{0}));
    bed.switcher.SetPolicy(other, bed.worlds.now());
    EXPECT_EQ(3ms, other.Debt(VfId{0}));
  };
  bed.worlds.Drive(bed.switcher, 30ms);
  EXPECT_GT(other.round(), round_before);
  for (size_t i = 1; i <= 3; ++i) EXPECT_EQ(VfId{1}, bed.worlds.turns()[i].vf) << i;
  EXPECT_EQ(VfId{0}, bed.worlds.turns()[4].vf);
  EXPECT_EQ(1ms, bed.worlds.turns()[4].end - bed.worlds.turns()[4].start);
}

TEST(SwitcherTest, HoldKeepsTheSlotOfAnIdleVf) {
  SimWorlds worlds{kStart};
  PolicyOptions options;
  options.idle = WhenIdle::kHold;
  StrictPolicy policy{options};
  Switcher switcher{worlds, policy, {}};
  worlds.Add(100, kEndless);
  worlds.Add(100, 0ns);
  worlds.Add(100, kEndless).view.paused = true;
  worlds.Drive(switcher, 40ms);
  EXPECT_EQ(20ms, worlds.vf(0).served);
  const Account& account = switcher.AccountAt(worlds.now());
  EXPECT_EQ(20'000'000u, account.Of(VfId{1}).entitled_ns);
  EXPECT_EQ(0u, account.Of(VfId{1}).runnable_ns);
  EXPECT_EQ(0u, account.Of(VfId{2}).entitled_ns);
}

TEST(SwitcherTest, VfsAtTheirLimitLeaveTheGpuIdleAndComeBackInTime) {
  SimWorlds worlds{kStart};
  worlds.may_idle = true;
  ReservePolicy policy{PolicyOptions{}};
  Switcher switcher{worlds, policy, {}};
  worlds.Add(100, kEndless).view.limit = kWhole / 4;
  worlds.Drive(switcher, 1s);
  EXPECT_EQ(2ms, worlds.turns()[0].end - worlds.turns()[0].start);
  EXPECT_EQ(kStart + 8ms, worlds.turns()[1].start);
  EXPECT_EQ(250ms, worlds.vf(0).served);
  const Account& account = switcher.AccountAt(worlds.now());
  EXPECT_EQ(750'000'000u, account.idle_ns());
  EXPECT_EQ(250'000'000u, account.Of(VfId{0}).entitled_ns);
}

TEST(SwitcherTest, AGuaranteeGoesFirstAndTheRestByWeight) {
  SimWorlds worlds{kStart};
  worlds.may_idle = true;
  ReservePolicy policy{PolicyOptions{}};
  Switcher switcher{worlds, policy, {}};
  worlds.Add(100, kEndless).view.guarantee = kWhole / 4;
  worlds.Add(300, kEndless);
  worlds.Drive(switcher, 10s);
  EXPECT_NEAR(10e9 * (0.25 + 0.75 / 4), static_cast<double>(worlds.vf(0).served.count()), 10e6);
}

TEST(SwitcherTest, AGuaranteeTakenAwayDuringItsTurnEndsIt) {
  ReservePolicy policy{PolicyOptions{}};
  std::vector<VfView> vfs = {{VfId{0}, 100, 0ns, true}, {VfId{1}, 100, 0ns, true}};
  vfs[0].guarantee = kWhole / 4;
  const auto pick = policy.Next(vfs, kStart);
  EXPECT_EQ(VfId{0}, pick->vf);
  vfs[0].guarantee = 0;
  policy.Show(vfs, kStart);
  policy.Ended(*pick, 2ms, kStart + 2ms);
  EXPECT_TRUE(policy.Next(vfs, kStart + 2ms).has_value());
}

}  // namespace
}  // namespace vgpud
