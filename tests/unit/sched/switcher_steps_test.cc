// SPDX-License-Identifier: Apache-2.0
// The Switcher step by step, over a GPU that does what the test says: every deadline to the nanosecond.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "sched/relaxed.h"
#include "sched/switcher.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000}};

class Gpu final : public WorldBackend {
 public:
  std::vector<VfView> vfs{{.vf = VfId{0}, .runnable = true}, {.vf = VfId{1}, .runnable = true}};
  bool work = true;
  bool excused = false;
  Ns delay{0};
  std::optional<WsState> stuck;  // where nothing is ever done
  std::string verbs;             // first letters, as they came
  TimePoint deadline{};

  std::span<const VfView> TurnBoundary(TimePoint) override { return vfs; }
  bool HasWork(VfId) override { return work; }
  void Load(VfId) override { verbs += 'l'; }
  void Run(VfId, TimePoint until) override {
    verbs += 'r';
    deadline = until;
  }
  void Finish(VfId) override { verbs += 'f'; }
  void Drain(VfId) override { verbs += 'd'; }
  void Save(VfId) override { verbs += 's'; }
  void Flr(VfId) override { verbs += 'F'; }
  void Park(VfId vf) override {
    verbs += 'P';
    vfs[Raw(vf)].runnable = false;
  }
  bool Complete(WsState state, VfId) override { return state != stuck; }
  bool Excused(VfId) override { return excused; }
  Ns HostDelay(VfId) override { return delay; }
};

struct Bed {
  Gpu gpu;
  std::unique_ptr<Policy> policy;
  SliceTrace trace{64};
  Switcher switcher;
  TimePoint now = kStart;

  explicit Bed(Switcher::Options options = {}, std::unique_ptr<Policy> made = std::make_unique<StrictPolicy>(2ms))
      : policy(std::move(made)), switcher(gpu, *policy, options) {
    switcher.SetTrace(&trace);
  }
  // Everything that is due so long after the start.
  WsState At(Ns since) {
    now = kStart + since;
    switcher.Poll(now);
    return switcher.state();
  }
  Ns NextPoll() const { return switcher.NextPoll() - kStart; }
  VfAccount Of(uint32_t vf) { return switcher.AccountAt(now).Of(VfId{vf}); }
  std::vector<SliceRecord> Turns() const {
    std::vector<SliceRecord> turns;
    SliceTrace::Reader reader{trace};
    for (SliceRecord record; reader.Next(&record);) turns.push_back(record);
    return turns;
  }
};

// As docs/world-switch.md has them.
TEST(SwitcherOptionsTest, Defaults) {
  const Switcher::Options options;
  EXPECT_EQ(10ms, options.preempt_timeout);
  EXPECT_EQ(10s, options.finish_timeout);
  EXPECT_EQ(1s, options.excuse_limit);
  EXPECT_EQ(5s, options.excuses.most);
  EXPECT_EQ(25u, options.excuses.percent);
  EXPECT_EQ(25u, options.host_delay_percent);
  EXPECT_EQ(40ms, options.host_delay_most);
  EXPECT_EQ(3u, options.hang_limit);
  EXPECT_EQ(60s, options.hang_window);
  EXPECT_TRUE(options.stays);
}

TEST(SwitcherStepsTest, ATurnIsOneOfEachVerbInOrder) {
  Bed bed;
  EXPECT_EQ(WsState::kOff, bed.switcher.state());
  EXPECT_EQ(TimePoint::max(), bed.switcher.NextPoll());
  EXPECT_EQ(TimePoint::max(), bed.switcher.idle_since());
  EXPECT_FALSE(bed.switcher.others_wait());
  EXPECT_EQ(0u, bed.switcher.impossible_events());
  EXPECT_EQ(WsState::kRun, bed.At(0ms));
  EXPECT_EQ("lr", bed.gpu.verbs);
  EXPECT_EQ(kStart + 2ms, bed.gpu.deadline);
  EXPECT_EQ(kStart + 2ms, bed.switcher.slice_end());
  EXPECT_EQ(2ms, bed.switcher.slice());
  EXPECT_EQ(VfId{0}, bed.switcher.current());
  EXPECT_TRUE(bed.switcher.others_wait());
  EXPECT_EQ(2ms, bed.NextPoll());
  EXPECT_FALSE(bed.switcher.PollOnce(kStart + 2ms - 1ns));
  EXPECT_TRUE(bed.switcher.PollOnce(kStart + 2ms));
  EXPECT_EQ(WsState::kDrain, bed.switcher.state());
  EXPECT_EQ(WsState::kRun, bed.At(2ms));
  EXPECT_EQ("lrdslr", bed.gpu.verbs);
  EXPECT_EQ(VfId{1}, bed.switcher.current());
}

TEST(SwitcherStepsTest, AGpuThatSaysNothingOfItsHostWasNotDelayed) {
  Gpu gpu;
  EXPECT_EQ(0ns, gpu.WorldBackend::HostDelay(VfId{0}));
}

TEST(SwitcherStepsTest, WhoIsAloneKeepsNobodyWaiting) {
  Bed bed;
  bed.gpu.vfs[1].runnable = false;
  bed.At(0ms);
  EXPECT_FALSE(bed.switcher.others_wait());
}

struct StuckCase {
  WsState state;
  Ns deadline;
  const char* verbs;  // until something of the next turn is asked for
};

TEST(SwitcherStepsTest, EveryStateThatWaitsHasItsDeadline) {
  for (const StuckCase& c : {StuckCase{WsState::kLoad, 5ms, "lFslFs"},
                             {WsState::kDrain, 10ms, "lrdFslr"},
                             {WsState::kSave, 5ms, "lrdsFs"}}) {
    Bed bed;
    bed.gpu.stuck = c.state;
    const Ns begin = c.state == WsState::kLoad ? 0ms : 2ms;
    bed.At(0ms);
    EXPECT_EQ(c.state, bed.At(begin));
    EXPECT_EQ(begin + c.deadline, bed.NextPoll());
    EXPECT_EQ(c.state, bed.At(begin + c.deadline - 1ns));
    bed.At(begin + c.deadline);
    if (c.state == WsState::kLoad) bed.At(begin + 2 * c.deadline);
    EXPECT_EQ(c.verbs, bed.gpu.verbs.substr(0, std::string(c.verbs).size()));
    EXPECT_EQ(0u, bed.switcher.impossible_events());
  }
}

TEST(SwitcherStepsTest, AResetHasASecondThenTheVfIsParked) {
  Bed bed{{.preempt_timeout = 1ns}};
  bed.At(0ms);
  bed.gpu.stuck = WsState::kDrain;
  EXPECT_EQ(WsState::kDrain, bed.At(2ms));
  EXPECT_EQ(2ms + 1ns, bed.NextPoll());
  bed.gpu.stuck = WsState::kFlr;
  bed.switcher.Step(WsEvent::kAckTimeout, bed.now);
  EXPECT_EQ(WsState::kFlr, bed.switcher.state());
  EXPECT_EQ(2ms + 1s, bed.NextPoll());
  EXPECT_EQ(WsState::kFlr, bed.At(2ms + 1s - 1ns));
  EXPECT_EQ(WsState::kRun, bed.At(2ms + 1s));
  EXPECT_EQ("lrdFPlr", bed.gpu.verbs);
  EXPECT_EQ(VfId{1}, bed.switcher.current());
  EXPECT_EQ(1u, bed.Of(0).hangs);
}

// No turn has begun: nobody's hang, and the time is that of a switch.
TEST(SwitcherStepsTest, ALoadThatHangsIsNoTurn) {
  Bed bed;
  bed.gpu.stuck = WsState::kLoad;
  bed.At(0ms);
  bed.At(5ms);
  bed.At(6ms);
  const Account& account = bed.switcher.AccountAt(bed.now);
  EXPECT_EQ(0u, account.Of(VfId{0}).hangs + account.Of(VfId{1}).hangs);
  EXPECT_EQ(0u, account.Of(VfId{0}).slices);
  EXPECT_EQ(6'000'000u, account.switch_ns());
  EXPECT_EQ(0u, account.leave_ns());
}

TEST(SwitcherStepsTest, TheLastExcuseEndsAtTheLimit) {
  Bed bed{{.excuse_limit = 25ms}};
  bed.gpu.stuck = WsState::kDrain;
  bed.gpu.excused = true;
  bed.At(0ms);
  for (const auto& [at, deadline] : {std::pair{2ms, 12ms}, {12ms, 22ms}, {22ms, 27ms}}) {
    EXPECT_EQ(WsState::kDrain, bed.At(at));
    EXPECT_EQ(deadline, bed.NextPoll());
  }
  EXPECT_EQ(WsState::kDrain, bed.At(27ms - 1ns));
  EXPECT_EQ(WsState::kRun, bed.At(27ms));
  EXPECT_EQ("lrdFslr", bed.gpu.verbs);
  EXPECT_EQ(1u, bed.Of(0).host_stalls);
  EXPECT_EQ(1u, bed.Of(0).hangs);
}

TEST(SwitcherStepsTest, NobodyIsExcusedFromASave) {
  Bed bed;
  bed.gpu.stuck = WsState::kSave;
  bed.gpu.excused = true;
  bed.At(0ms);
  bed.At(2ms);
  bed.At(7ms);
  EXPECT_EQ("lrdsFs", bed.gpu.verbs);
}

TEST(SwitcherStepsTest, DelaysOfTheHostAreForgivenUpToAnAllowanceThatGrowsWithSlices) {
  Bed bed{{.host_delay_percent = 25, .host_delay_most = 1ms}};
  bed.gpu.vfs.pop_back();
  bed.gpu.delay = 1h;
  // Each turn ends 1 ms late; with each slice of 2 ms, 500 us of the allowance come back.
  Ns time{0};
  bed.At(time);
  for (int turn = 0; turn < 3; ++turn) {
    bed.gpu.stuck = WsState::kDrain;
    bed.At(time += bed.switcher.slice());
    bed.gpu.stuck.reset();
    bed.At(time += 1ms);
  }
  const auto turns = bed.Turns();
  ASSERT_EQ(3u, turns.size());
  EXPECT_EQ(1ms, turns[0].host_delay);
  EXPECT_EQ(2ms, turns[1].end - turns[1].start - 1ms);
  EXPECT_EQ(500us, turns[1].host_delay);
  EXPECT_EQ(1500us, turns[2].end - turns[2].start - 1ms);  // the rest was debt
  EXPECT_EQ(375us, turns[2].host_delay);
  EXPECT_EQ(1'875'000u, bed.Of(0).host_delay_ns);
  EXPECT_EQ(3'000'000u - 1'875'000u, bed.Of(0).overrun_ns);
}

TEST(SwitcherStepsTest, AVfThatFollowsHasTheWholeAllowance) {
  for (const bool forget : {false, true}) {
    Bed bed{{.host_delay_percent = 0, .host_delay_most = 1ms}};
    bed.gpu.vfs.pop_back();
    bed.gpu.delay = 1h;
    bed.At(0ms);
    bed.At(3ms);  // late by the whole of it
    if (forget) bed.switcher.Forget(VfId{0});
    bed.switcher.Forget(VfId{1});  // never seen
    bed.At(6ms);
    EXPECT_EQ(forget ? 1ms : 0ms, bed.Turns()[1].host_delay);
  }
}

TEST(SwitcherStepsTest, ASingleNanosecondOfDelayIsForgivenToo) {
  Bed bed;
  bed.gpu.delay = 1h;
  bed.At(0ms);
  bed.At(2ms + 1ns);
  EXPECT_EQ(1u, bed.Of(0).host_delay_ns);
  EXPECT_EQ(0u, bed.Of(0).overrun_ns);
}

TEST(SwitcherStepsTest, WhatComesAfterTheSliceIsNoRunningTime) {
  Bed bed;
  bed.At(0ms);
  bed.gpu.stuck = WsState::kDrain;
  bed.At(2300us);
  const Account& account = bed.switcher.AccountAt(bed.now);
  EXPECT_EQ(2'000'000u, account.run_ns());
  EXPECT_EQ(300'000u, account.leave_ns());
  bed.gpu.stuck.reset();
  bed.At(2500us);
  EXPECT_EQ(500'000u, bed.Of(0).overrun_ns);
  EXPECT_EQ(1u, bed.Of(0).forced_preemptions);
}

TEST(SwitcherStepsTest, HangsCountForExactlyAWindow) {
  for (const Ns more : {0ns, 1ns}) {
    Bed bed{{.hang_limit = 2}};
    bed.gpu.vfs.pop_back();
    bed.gpu.stuck = WsState::kDrain;
    bed.At(0ms);
    bed.At(2ms);
    bed.At(12ms);  // the first
    bed.At(60s);
    bed.At(60s + 12ms + more);
    EXPECT_EQ(more == 0ns ? "lrdFslrdFP" : "lrdFslrdFslr", bed.gpu.verbs) << more.count();
  }
}

TEST(SwitcherStepsTest, AnOperatorsResetClearsTheHangs) {
  for (const bool reset : {false, true}) {
    Bed bed{{.hang_limit = 2}};
    bed.gpu.vfs.pop_back();
    bed.gpu.stuck = WsState::kDrain;
    bed.At(0ms);
    bed.At(2ms);
    bed.At(12ms);
    bed.switcher.Reinstate(VfId{1});  // never seen
    if (reset) bed.switcher.Reinstate(VfId{0});
    bed.At(20ms);
    bed.At(30ms);
    EXPECT_EQ(reset ? WsState::kRun : WsState::kOff, bed.switcher.state());
  }
}

TEST(SwitcherStepsTest, HangsOfAnEarlierSwitcherCount) {
  std::vector<TimePoint> hangs;
  {
    Bed bed{{.hang_limit = 3}};
    bed.gpu.vfs.pop_back();
    bed.gpu.stuck = WsState::kDrain;
    for (const Ns at : {0ms, 2ms, 12ms, 20ms, 30ms}) bed.At(at);
    EXPECT_EQ(WsState::kRun, bed.switcher.state()) << "twice is not too often";
    const auto of = bed.switcher.HangsOf(VfId{0});
    hangs.assign(of.begin(), of.end());
    EXPECT_EQ(2u, hangs.size());
    EXPECT_TRUE(bed.switcher.HangsOf(VfId{7}).empty()) << "never seen";
  }
  for (const bool told : {false, true}) {
    Bed bed{{.hang_limit = 3}};
    bed.gpu.vfs.pop_back();
    bed.gpu.stuck = WsState::kDrain;
    if (told) bed.switcher.SetHangs(VfId{0}, hangs);
    for (const Ns at : {40ms, 42ms, 52ms}) bed.At(at);
    EXPECT_EQ(told ? WsState::kOff : WsState::kRun, bed.switcher.state());
  }
}

std::unique_ptr<Policy> Waiting(Ns grace) {
  PolicyOptions options;
  options.idle_grace = grace;
  return std::make_unique<StrictPolicy>(options);
}

TEST(SwitcherStepsTest, AGapThatIsWaitedForCountsIfOthersHaveWork) {
  for (const bool others : {false, true}) {
    Bed bed{{}, Waiting(100us)};
    bed.gpu.vfs[1].runnable = others;
    bed.At(0ms);
    bed.gpu.work = false;
    EXPECT_EQ(WsState::kRun, bed.At(1ms));
    EXPECT_EQ(kStart + 1ms, bed.switcher.idle_since());
    EXPECT_EQ(1100us, bed.NextPoll());
    bed.gpu.work = true;
    bed.At(1050us);
    EXPECT_EQ(TimePoint::max(), bed.switcher.idle_since());
    EXPECT_EQ(kStart + 1050us, bed.switcher.back_since());
    EXPECT_EQ(2ms, bed.NextPoll());
    EXPECT_EQ(others ? 50'000u : 0u, bed.Of(0).anticipated_ns);
    bed.gpu.work = false;
    bed.At(1950us);
    EXPECT_EQ(2ms, bed.NextPoll());
    bed.At(2100us);  // seen late: the slice was over
    EXPECT_EQ(others ? 100'000u : 0u, bed.Of(0).anticipated_ns);
    EXPECT_EQ(TurnEnd::kSliceEnd, bed.Turns()[0].reason);
    EXPECT_EQ(0u, bed.Of(0).forced_preemptions);
  }
}

TEST(SwitcherStepsTest, WhatIsWaitedForIsWhatTheOptionsSayAtTheTurnBoundary) {
  Bed bed;
  PolicyOptions options;
  options.idle_grace = 100us;
  bed.policy->SetOptions(options, bed.now);
  bed.At(0ms);
  options.idle_grace = 300us;
  bed.policy->SetOptions(options, bed.now);
  bed.gpu.work = false;
  EXPECT_EQ(WsState::kRun, bed.At(1ms));
  EXPECT_EQ(1100us, bed.NextPoll());
  EXPECT_EQ(WsState::kRun, bed.At(1100us));
  EXPECT_EQ(1u, bed.Turns().size());
  EXPECT_EQ(1400us, bed.NextPoll());
}

TEST(SwitcherStepsTest, AGapThatIsNotWaitedForEndsTheTurn) {
  Bed bed{{}, Waiting(100us)};
  bed.At(0ms);
  bed.gpu.work = false;
  bed.At(1ms);
  EXPECT_EQ(WsState::kRun, bed.At(1100us - 1ns));
  bed.At(1100us);
  ASSERT_EQ(1u, bed.Turns().size());
  EXPECT_EQ(TurnEnd::kYield, bed.Turns()[0].reason);
  EXPECT_EQ(100'000u, bed.Of(0).anticipated_ns);
  EXPECT_EQ(0u, bed.Of(0).forced_preemptions);
  EXPECT_EQ(0u, bed.switcher.AccountAt(bed.now).TimesOf(VfId{0}).overrun.count());
}

std::unique_ptr<Policy> Relaxed(WhenIdle idle) {
  PolicyOptions options;
  options.idle = idle;
  return std::make_unique<RelaxedPolicy>(options);
}

TEST(SwitcherStepsTest, WithoutForceOnlyAKernelThatRunsMayFinish) {
  for (const bool work : {false, true}) {
    Bed bed{{.finish_timeout = 50ms}, Relaxed(WhenIdle::kHold)};
    bed.gpu.work = work;
    bed.gpu.stuck = WsState::kFinish;
    bed.At(0ms);
    EXPECT_EQ(TimePoint::max(), bed.gpu.deadline);
    EXPECT_EQ(work ? WsState::kFinish : WsState::kRun, bed.At(2ms));
    EXPECT_EQ(work ? "lrf" : "lrdslr", bed.gpu.verbs);
    if (!work) continue;
    EXPECT_EQ(52ms, bed.NextPoll());
    EXPECT_EQ(WsState::kFinish, bed.At(52ms - 1ns));
    bed.At(52ms);
    EXPECT_EQ("lrfdslr", bed.gpu.verbs);
    EXPECT_EQ(1u, bed.Of(0).forced_preemptions);
  }
}

TEST(SwitcherStepsTest, AKernelThatFinishedWasNotForced) {
  Bed bed{{}, Relaxed(WhenIdle::kYield)};
  bed.gpu.stuck = WsState::kFinish;
  bed.At(0ms);
  bed.At(2ms);
  bed.gpu.stuck.reset();
  bed.At(5ms);
  EXPECT_EQ("lrfdslr", bed.gpu.verbs);
  EXPECT_EQ(0u, bed.Of(0).forced_preemptions);
  EXPECT_EQ(5'000'000u, bed.Of(0).received_ns);
  EXPECT_EQ(3'000'000u, bed.Of(0).overrun_ns);
}

TEST(SwitcherStepsTest, ForceIsExpectedUntilTheNextPolicyIsThere) {
  Bed bed{{}, Relaxed(WhenIdle::kYield)};
  bed.gpu.stuck = WsState::kFinish;
  bed.At(0ms);
  bed.switcher.ExpectForce(bed.now);
  EXPECT_EQ(WsState::kRun, bed.switcher.state());
  EXPECT_EQ(WsState::kRun, bed.At(2ms));
  EXPECT_EQ("lrdslr", bed.gpu.verbs);
  const auto next = Relaxed(WhenIdle::kYield);
  bed.switcher.SetPolicy(*next, bed.now);
  EXPECT_EQ(WsState::kFinish, bed.At(4ms));
  bed.switcher.ExpectForce(bed.now);
  EXPECT_EQ(WsState::kDrain, bed.switcher.state());
}

TEST(SwitcherStepsTest, ARevokeWithoutATurnIsNothing) {
  Bed bed;
  bed.switcher.Revoke(bed.now);
  EXPECT_EQ(WsState::kOff, bed.switcher.state());
  bed.gpu.stuck = WsState::kDrain;
  bed.At(0ms);
  bed.switcher.Revoke(bed.now);
  EXPECT_EQ(WsState::kDrain, bed.switcher.state());
  bed.switcher.Revoke(bed.now);
  EXPECT_EQ(WsState::kDrain, bed.switcher.state());
  EXPECT_EQ(0u, bed.switcher.impossible_events());
  bed.gpu.stuck.reset();
  bed.At(1ms);
  EXPECT_EQ(TurnEnd::kRevoke, bed.Turns()[0].reason);
}

TEST(SwitcherStepsTest, ASwitchIsTheTimeFromOneTurnToTheNext) {
  Bed bed;
  bed.At(0ms);
  bed.gpu.stuck = WsState::kLoad;
  bed.At(2ms);
  bed.gpu.stuck.reset();
  bed.At(2ms + 30us);
  bed.gpu.stuck = WsState::kDrain;
  bed.At(4ms + 30us);
  bed.gpu.stuck.reset();
  bed.At(4ms + 37us);
  const auto turns = bed.Turns();
  ASSERT_EQ(2u, turns.size());
  EXPECT_EQ(0ns, turns[0].switch_time);
  EXPECT_EQ(30us, turns[1].switch_time);
  const Account& account = bed.switcher.AccountAt(bed.now);
  EXPECT_EQ(2u, account.switches().count());
  EXPECT_EQ(30'000u + 7'000u, account.switches().sum_ns());
  EXPECT_EQ(30'000u, account.switch_ns());
}

}  // namespace
}  // namespace vgpud
