// SPDX-License-Identifier: Apache-2.0
// Each scenario that ships, played through the scheduler, with what it is there to show.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tools/sim/simulation.h"
#include "tools/sim/workload_file.h"

namespace vgpud::tools {
namespace {

using namespace std::chrono_literals;

Workload Scenario(const std::string& name) {
  auto workload = LoadWorkload(std::string(VGPUD_SCENARIOS) + "/" + name + ".toml");
  EXPECT_TRUE(workload) << workload.error().context;
  return workload.value_or(Workload{});
}

Outcome Played(const Workload& workload, const std::string& policy = "", uint64_t seed = 1,
               const std::function<void(const SliceRecord&)>& on_turn = nullptr) {
  auto outcome = Simulate(workload, policy.empty() ? workload.gpu.policy : policy, seed, on_turn);
  EXPECT_TRUE(outcome) << outcome.error().context;
  return outcome.value_or(Outcome{});
}

const VfOutcome& Of(const Outcome& outcome, std::string_view name) {
  const auto vf =
      std::find_if(outcome.vfs.begin(), outcome.vfs.end(), [&](const VfOutcome& v) { return v.name == name; });
  EXPECT_NE(outcome.vfs.end(), vf) << name;
  return *vf;
}

double Seconds(Ns t) { return std::chrono::duration<double>(t).count(); }

// GPU time of each VF in [from, to) since the start, in seconds.
class Shares {
 public:
  Shares(Ns from, Ns to) : from_(kSimulationStart + from), to_(kSimulationStart + to) {}
  void Add(const SliceRecord& turn) {
    const Ns inside = std::min(turn.end, to_) - std::max(turn.start, from_);
    if (inside > 0ns) used_[Raw(turn.vf)] += inside;
  }
  double Of(uint32_t vf) const {
    const auto found = used_.find(vf);
    return found == used_.end() ? 0 : Seconds(found->second) / Seconds(to_ - from_);
  }

 private:
  TimePoint from_, to_;
  std::map<uint32_t, Ns> used_;
};

TEST(Scenarios, EightDevelopersOfATenthFillTheCardThatOneLeavesEmpty) {
  const Outcome one = Played(Scenario("one-developer"));
  EXPECT_NEAR(0.10, one.Utilisation(), 0.02);
  const Workload eight = Scenario("eight-developers");
  ASSERT_EQ(8u, eight.vfs.size());
  const Outcome all = Played(eight);
  EXPECT_GT(all.Utilisation(), 0.65);
  EXPECT_EQ(0ns, all.idle_with_work);
  EXPECT_LE(all.worst_wait, 8 * (2ms + 200us + 70us));
  for (const VfOutcome& vf : all.vfs) EXPECT_GT(Seconds(vf.served) / Seconds(vf.present), 0.07) << vf.name;
}

TEST(Scenarios, EightVfsOfFourGigabytesFillTheCard) {
  const Workload workload = Scenario("eight-developers");
  EXPECT_EQ(uint64_t{32} << 30, workload.gpu.vram_bytes);
  uint64_t taken = 0;
  for (const VfSpec& vf : workload.vfs) taken += vf.vram_bytes;
  EXPECT_EQ(workload.gpu.vram_bytes, taken);
}

TEST(Scenarios, AnswersBesideTrainingBeginAtTheNextTurnBoundaryAndCostTheTrainingsNothing) {
  Workload workload = Scenario("answers-beside-training");
  ASSERT_EQ(8u, workload.vfs.size());
  const Outcome first = Played(workload);
  workload.vfs[0].view.wake_first = false;
  const Outcome ordinary = Played(workload);
  const Ns turn = 2ms + 200us + 200us;  // with its switch and the time to leave
  EXPECT_EQ(2ms, Of(first, "answers").wake_bound);
  EXPECT_EQ(14ms, Of(ordinary, "answers").wake_bound);
  EXPECT_LE(Ns{static_cast<int64_t>(Of(first, "answers").wake_wait.Percentile(99))}, turn);
  EXPECT_LE(Ns{static_cast<int64_t>(Of(ordinary, "answers").wake_wait.max_ns())}, 7 * turn);
  EXPECT_GE(Ns{static_cast<int64_t>(Of(ordinary, "answers").wake_wait.Percentile(99))}, 10ms);
  EXPECT_GT(Of(first, "answers").wake_wait.count(), 1000u);
  for (const VfOutcome& vf : first.vfs) {
    if (vf.name == "answers") continue;
    EXPECT_NEAR(1, Seconds(vf.served) / Seconds(ordinary.vfs[Raw(vf.vf)].served), 0.002) << vf.name;
  }
}

TEST(Scenarios, TheGuaranteeIsKeptTheLimitHeldAndTheRestHandedOver) {
  Shares alone(1s, 9s), both(11s, 19s), handed_over(21s, 29s);
  Played(Scenario("hand-over"), "", 1, [&](const SliceRecord& turn) {
    for (Shares* s : {&alone, &both, &handed_over}) s->Add(turn);
  });
  EXPECT_NEAR(0.75, alone.Of(0), 0.01);
  EXPECT_EQ(0, alone.Of(1));
  EXPECT_NEAR(0.5, both.Of(0), 0.02);
  EXPECT_NEAR(0.5, both.Of(1), 0.02);
  EXPECT_EQ(0, handed_over.Of(0));
  EXPECT_NEAR(0.75, handed_over.Of(1), 0.01);
}

// Ten minutes of it at a time: quick with sanitizers as well.
struct Part {
  const char* name;
  Ns start;
  double busy, developers, trainings;
};
class NightTest : public testing::TestWithParam<Part> {};
TEST_P(NightTest, TheCardIsBusyWhenTheTrainingsAreThere) {
  const Part& part = GetParam();
  Workload workload = Scenario("training-at-night");
  workload.time_of_day = part.start;
  workload.duration = 10min;
  const Outcome outcome = Played(workload);
  EXPECT_NEAR(part.busy, outcome.Utilisation(), 0.15);
  Ns developers{0}, trainings{0};
  for (const VfOutcome& vf : outcome.vfs) (vf.name.starts_with("dev") ? developers : trainings) += vf.served;
  EXPECT_NEAR(part.developers, Seconds(developers) / Seconds(outcome.wall), 0.15);
  EXPECT_NEAR(part.trainings, Seconds(trainings) / Seconds(outcome.wall), 0.03);
}
INSTANTIATE_TEST_SUITE_P(, NightTest,
                         testing::ValuesIn(std::vector<Part>{{"noon", 12h, 0.4, 0.4, 0},
                                                             {"evening", 17h + 55min, 0.7, 0.2, 0.49},
                                                             {"night", 3h, 0.98, 0, 0.98},
                                                             {"morning", 8h + 55min, 0.7, 0.2, 0.49}}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Scenarios, TrainingInTheGapsTakesWhatTheDevelopersLeave) {
  Workload workload = Scenario("training-in-the-gaps");
  workload.time_of_day = 12h;
  workload.duration = 10min;
  const Outcome shared = Played(workload);
  EXPECT_GT(shared.Utilisation(), 0.97);
  std::erase_if(workload.vfs, [](const VfSpec& vf) { return vf.name.starts_with("training"); });
  const Outcome alone = Played(workload);
  for (const VfOutcome& vf : alone.vfs)
    EXPECT_GT(Seconds(Of(shared, vf.name).served), 0.8 * Seconds(vf.served)) << vf.name;
}

TEST(Scenarios, HostileGuestsGainNothing) {
  const Outcome outcome = Played(Scenario("hostile"));
  double honest = 0;
  for (const VfOutcome& vf : outcome.vfs)
    if (vf.name.starts_with("honest")) honest += static_cast<double>(vf.account.received_ns) / 4;
  for (const char* name : {"endless", "overrunner", "sleeper", "storm"})
    EXPECT_LE(static_cast<double>(Of(outcome, name).account.received_ns), honest * 1.003) << name;
  EXPECT_GE(outcome.jain, 0.9999);
  EXPECT_LE(outcome.lag_of_bound, 1.0 + 1e-6);
}

TEST(Scenarios, ATenantThatSplitsItselfStaysInItsGroupsShare) {
  Workload workload = Scenario("splitter");
  EXPECT_NEAR(0.5, Seconds(Ns{static_cast<int64_t>(Of(Played(workload), "honest").account.received_ns)}) / 60, 0.02);
  for (VfSpec& vf : workload.vfs) vf.view.group = kNoGroup;
  EXPECT_NEAR(0.2, Seconds(Ns{static_cast<int64_t>(Of(Played(workload), "honest").account.received_ns)}) / 60, 0.02);
}

TEST(Scenarios, WhoHangsIsParkedAndTheOthersGoOn) {
  const Outcome outcome = Played(Scenario("hangs"));
  EXPECT_TRUE(Of(outcome, "endless").parked);
  EXPECT_EQ(3u, Of(outcome, "endless").account.hangs);
  EXPECT_FALSE(Of(outcome, "hangs").parked);
  EXPECT_GT(Of(outcome, "hangs").account.hangs, 0u);
  EXPECT_GT(Of(outcome, "honest1").served, 18s);
  EXPECT_LE(Of(outcome, "honest1").worst_wait, 2 * (2ms + 10ms + 1ms + 50us));
}

TEST(Scenarios, ChangesTakeEffectWhileGuestsRun) {
  Shares before(0s, 10s), heavier(11s, 19s), paused(21s, 24s), resumed(26s, 29s), three(31s, 39s);
  Played(Scenario("changes"), "", 1, [&](const SliceRecord& turn) {
    for (Shares* s : {&before, &heavier, &paused, &resumed, &three}) s->Add(turn);
  });
  EXPECT_NEAR(0.5, before.Of(0), 0.02);
  EXPECT_NEAR(0.75, heavier.Of(0), 0.02);
  EXPECT_EQ(0, paused.Of(1));
  EXPECT_NEAR(1, paused.Of(0), 0.001);
  EXPECT_NEAR(0.25, resumed.Of(1), 0.02);
  EXPECT_NEAR(0.6, three.Of(0), 0.02);
  EXPECT_NEAR(0.2, three.Of(2), 0.02);
}

TEST(Scenarios, ADayOf64VfsIsServedInTurn) {
  Workload workload = Scenario("day-of-64");
  EXPECT_EQ(64u, workload.vfs.size());
  EXPECT_EQ(24h, workload.duration);
  workload.time_of_day = 19h + 58min;
  workload.duration = 5min;
  const Outcome outcome = Played(workload);
  EXPECT_GT(outcome.turns, 10'000u);
  EXPECT_LE(outcome.lag_of_bound, 1.0 + 1e-6);
  EXPECT_EQ(0ns, outcome.idle_with_work);
}

// N = 2..64 always busy, one of them overrunning as much as it may.
class LagTest : public testing::TestWithParam<int> {};
TEST_P(LagTest, StaysWithinItsBound) {
  const auto workload =
      ParseWorkload("duration = \"20s\"\n[[vf]]\nname = \"busy\"\ncount = " + std::to_string(GetParam() - 1) +
                        "\n[[vf]]\nname = \"overrunner\"\nhostile = \"overrunner\"\n",
                    "lag");
  ASSERT_TRUE(workload) << workload.error().context;
  const Outcome outcome = Played(*workload);
  EXPECT_LE(outcome.lag_of_bound, 1.0 + 1e-6);
  EXPECT_GT(outcome.lag_of_bound, 0.5);
  EXPECT_GE(outcome.jain, 0.995);
}
INSTANTIATE_TEST_SUITE_P(, LagTest, testing::Values(2, 3, 8, 16, 64));

TEST(Simulation, IsTheSameForTheSameSeedAndAnotherForAnother) {
  Workload workload = Scenario("eight-developers");
  workload.duration = 30s;
  std::vector<SliceRecord> first, again, other;
  Played(workload, "", 7, [&](const SliceRecord& turn) { first.push_back(turn); });
  Played(workload, "", 7, [&](const SliceRecord& turn) { again.push_back(turn); });
  Played(workload, "", 8, [&](const SliceRecord& turn) { other.push_back(turn); });
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Simulation, EveryNanosecondIsInTheAccountAndInTheTrace) {
  Workload workload = Scenario("hostile");
  workload.duration = 5s;
  uint64_t next = 0;
  Ns run{0}, switching{0};
  TimePoint last_end = kSimulationStart;
  const Outcome outcome = Played(workload, "", 1, [&](const SliceRecord& turn) {
    EXPECT_EQ(next++, turn.sequence);
    EXPECT_LE(last_end, turn.start - turn.switch_time);
    last_end = turn.end;
    run += turn.end - turn.start;
    switching += turn.switch_time;
  });
  EXPECT_EQ(outcome.turns, next);
  EXPECT_EQ(static_cast<uint64_t>(outcome.wall.count()), outcome.run_ns + outcome.switch_ns + outcome.idle_ns);
  EXPECT_NEAR(static_cast<double>(outcome.run_ns), static_cast<double>(run.count()), 2.1e6);  // the last turn is open
  EXPECT_NEAR(static_cast<double>(outcome.switch_ns), static_cast<double>(switching.count()), 1e5);
  EXPECT_EQ(0u, outcome.impossible_events);
}

TEST(Simulation, EveryPolicyPlaysEveryScenario) {
  for (const char* name : {"eight-developers", "hand-over", "hostile", "splitter", "hangs", "changes"}) {
    Workload workload = Scenario(name);
    workload.duration = std::min<Ns>(workload.duration, 40s);
    for (const char* policy : {"strict", "reserve", "relaxed"}) {
      const Outcome outcome = Played(workload, policy);
      EXPECT_GT(outcome.turns, 100u) << name << " " << policy;
      EXPECT_EQ(0u, outcome.impossible_events) << name << " " << policy;
    }
  }
}

TEST(Simulation, AHeldTurnStaysIdle) {
  Workload workload = Scenario("eight-developers");
  workload.duration = 30s;
  workload.gpu.options.idle = WhenIdle::kHold;
  const Outcome held = Played(workload);
  EXPECT_LT(held.Utilisation(), 0.6);
  EXPECT_GT(held.idle_with_work, 1s);
}

Workload Parsed(const std::string& toml) {
  auto workload = ParseWorkload(toml, "test");
  EXPECT_TRUE(workload) << workload.error().context;
  return workload.value_or(Workload{});
}

TEST(Simulation, WhoIsAloneIsNotTakenOffTheGpuAsByVgpud) {
  Workload workload = Parsed("duration = \"1s\"\n[gpu]\nresume_cost = \"1ms\"\n[[vf]]\nname = \"a\"\n");
  const Outcome stays = Played(workload);
  EXPECT_GT(stays.Utilisation(), 0.999);
  EXPECT_EQ(499u, stays.turns);
  EXPECT_EQ(0u, Of(stays, "a").account.forced_preemptions);
  workload.gpu.take_back_alone = true;
  const Outcome taken_back = Played(workload);
  EXPECT_LT(taken_back.Utilisation(), 0.7);
  EXPECT_GT(Of(taken_back, "a").account.forced_preemptions, 300u);
}

TEST(Simulation, WhoComesHasTheGpuAtTheEndOfTheSlice) {
  std::vector<SliceRecord> turns;
  Played(Parsed("duration = \"10ms\"\n[[vf]]\nname = \"a\"\n[[vf]]\nname = \"b\"\njoins = \"3500us\"\n"), "", 1,
         [&](const SliceRecord& turn) { turns.push_back(turn); });
  ASSERT_GE(turns.size(), 4u);
  const TimePoint first = kSimulationStart + 50us;  // after the switch
  EXPECT_EQ(first + 2ms, turns[0].end);
  EXPECT_EQ(first + 2ms, turns[1].start);
  EXPECT_EQ(VfId{0}, turns[1].vf);
  EXPECT_EQ(0ns, turns[1].switch_time);
  EXPECT_EQ(first + 4ms + 20us, turns[1].end) << "forced, with the latency of that: who joins needs a boundary";
  EXPECT_EQ(VfId{0}, turns[2].vf) << "b has its first work a moment later";
  EXPECT_EQ(turns[1].end + 2ms - 20us + 20us, turns[2].end) << "forced as well; less the debt of the turn before";
  EXPECT_EQ(VfId{1}, turns[3].vf);
  EXPECT_EQ(turns[2].end + 50us, turns[3].start);
}

TEST(Simulation, WhoIsAloneAndHasNothingToDoRestsOnTheGpuAndGivesWayAtOnce) {
  const std::string sleeper = "[[vf]]\narrival = \"bursty\"\nwork = \"10ms\"\nsleep = \"90ms\"\nname = ";
  const Outcome alone = Played(Parsed("duration = \"10s\"\n[gpu]\nresume_cost = \"5ms\"\n" + sleeper + "\"a\"\n"));
  EXPECT_EQ(50'000u, alone.switch_ns) << "the one at the beginning";
  EXPECT_NEAR(0.1, alone.Utilisation(), 0.002);
  EXPECT_NEAR(9e9, static_cast<double>(alone.idle_ns), 1e8);
  Ns wait{0};
  Played(Parsed("duration = \"10s\"\n" + sleeper + "\"a\"\n" + sleeper + "\"b\"\n"), "", 1,
         [&](const SliceRecord& turn) { wait = std::max(wait, turn.waited); });
  EXPECT_GE(wait, 50us);
  EXPECT_LT(wait, 3ms) << "a switch, and a slice of the other's where they meet";
}

TEST(Simulation, AnUnknownPolicyIsRefused) {
  const auto outcome = Simulate(Scenario("hostile"), "lottery", 1);
  ASSERT_FALSE(outcome);
  EXPECT_NE(std::string::npos, outcome.error().context.find("lottery"));
}

}  // namespace
}  // namespace vgpud::tools
