// SPDX-License-Identifier: Apache-2.0
#include "sched/account/felt.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000}};
constexpr VfId kA{0}, kB{1};

TimePoint At(Ns since) { return kStart + since; }

struct Shown {
  bool runnable = false;
  Ns since{0};
  bool program = true;
  bool paused = false;
};

// Two VFs at a boundary.
void Boundary(FeltAccount& felt, Ns now, const Shown& a, const Shown& b) {
  const VfView views[] = {{.vf = kA, .runnable = a.runnable, .paused = a.paused},
                          {.vf = kB, .runnable = b.runnable, .paused = b.paused}};
  const Activity activities[] = {{a.program, At(a.since)}, {b.program, At(b.since)}};
  felt.Observe(views, activities, At(now));
}

uint64_t Us(const FeltAccount& felt, VfId vf, Felt kind) { return felt.Of(vf)[static_cast<size_t>(kind)] / 1000; }

uint64_t Sum(const FeltTimes& times) { return std::accumulate(times.begin(), times.end(), uint64_t{0}); }

// A waits while B has its turn: 100 us of switch, 2 ms, and A's own turn.
TEST(FeltAccountTest, WhoHasWorkWaitsForTheTurnsOfOthersAndForSwitches) {
  FeltAccount felt;
  Boundary(felt, 0ms, {.runnable = true}, {.runnable = true});
  felt.Use(GpuUse::kSwitch, kB, At(0us));
  felt.Use(GpuUse::kRun, kB, At(100us));
  felt.Use(GpuUse::kLeave, kB, At(2100us));
  felt.Use(GpuUse::kSwitch, kB, At(2150us));
  Boundary(felt, 2200us, {.runnable = true}, {.runnable = true});
  EXPECT_EQ(150u, Us(felt, kA, Felt::kSwitching));
  EXPECT_EQ(2050u, Us(felt, kA, Felt::kOthers));
  EXPECT_EQ(2050u, Us(felt, kB, Felt::kGpu));
  EXPECT_EQ(150u, Us(felt, kB, Felt::kSwitching));
  EXPECT_EQ(2'200'000u, Sum(felt.Of(kA)));
  EXPECT_EQ(2'200'000u, Sum(felt.Of(kB)));
}

// It gets work in the middle of B's turn, which the boundaries do not see.
TEST(FeltAccountTest, WaitingBeginsWhenTheProgramHasWorkAndNotAtTheNextBoundary) {
  FeltAccount felt;
  Boundary(felt, 0ms, {.runnable = true}, {.runnable = true});
  felt.Use(GpuUse::kRun, kA, At(0us));
  felt.Use(GpuUse::kSwitch, kA, At(1ms));
  Boundary(felt, 1ms, {.runnable = false, .since = 1ms}, {.runnable = true});
  felt.Use(GpuUse::kRun, kB, At(1ms));
  felt.Use(GpuUse::kSwitch, kB, At(3ms));
  EXPECT_EQ(0u, Us(felt, kA, Felt::kThinking)) << "it has not ended";
  Boundary(felt, 3ms, {.runnable = true, .since = 1200us}, {.runnable = true});
  EXPECT_EQ(1000u, Us(felt, kA, Felt::kGpu));
  EXPECT_EQ(200u, Us(felt, kA, Felt::kThinking));
  EXPECT_EQ(1800u, Us(felt, kA, Felt::kOthers));
}

TEST(FeltAccountTest, BeforeTheFirstLaunchAndAfterTheLastWaitNobodyIsActive) {
  FeltAccount felt;
  felt.Use(GpuUse::kIdle, kA, At(0us));
  Boundary(felt, 0ms, {}, {});
  Boundary(felt, 5ms, {.runnable = true, .since = 4ms}, {.program = false});
  EXPECT_EQ(1000u, Us(felt, kA, Felt::kSwitching)) << "it was being woken";
  EXPECT_EQ(1'000'000u, Sum(felt.Of(kA)));
  felt.Use(GpuUse::kRun, kA, At(5ms));
  felt.Use(GpuUse::kSwitch, kA, At(8ms));
  Boundary(felt, 8ms, {.runnable = false, .since = 7ms}, {.program = false});
  felt.Use(GpuUse::kIdle, kA, At(8ms));
  Boundary(felt, 50ms, {.program = false}, {.program = false});
  Boundary(felt, 60ms, {.runnable = true, .since = 60ms}, {});
  EXPECT_EQ(2000u, Us(felt, kA, Felt::kGpu));
  EXPECT_EQ(0u, Us(felt, kA, Felt::kThinking)) << "the program ended without a further launch";
  EXPECT_EQ(0u, Sum(felt.Of(kB)));
}

TEST(FeltAccountTest, AGapInItsOwnTurnIsThinking) {
  FeltAccount felt;
  Boundary(felt, 0ms, {.runnable = true}, {});
  felt.Use(GpuUse::kRun, kA, At(0us));
  felt.Gap(At(300us), At(400us));
  felt.Gap(At(900us), At(900us));
  felt.Use(GpuUse::kLeave, kA, At(1ms));
  felt.Use(GpuUse::kSwitch, kA, At(1050us));
  Boundary(felt, 1100us, {.runnable = true}, {});
  EXPECT_EQ(950u, Us(felt, kA, Felt::kGpu));
  EXPECT_EQ(100u, Us(felt, kA, Felt::kThinking));
  EXPECT_EQ(50u, Us(felt, kA, Felt::kSwitching));
}

TEST(FeltAccountTest, AHostThatGivesNoCoreIsNobodysTurn) {
  FeltAccount felt;
  Boundary(felt, 0ms, {.runnable = true}, {.runnable = true});
  felt.Use(GpuUse::kRun, kB, At(0us));
  felt.Use(GpuUse::kLeave, kB, At(2ms));
  felt.HostDelay(3ms);
  felt.Use(GpuUse::kSwitch, kB, At(6ms));
  Boundary(felt, 6ms, {.runnable = true}, {.runnable = true});
  EXPECT_EQ(3000u, Us(felt, kA, Felt::kStalled));
  EXPECT_EQ(3000u, Us(felt, kA, Felt::kOthers));
  EXPECT_EQ(3000u, Us(felt, kB, Felt::kStalled));
  EXPECT_EQ(3000u, Us(felt, kB, Felt::kGpu));
}

TEST(FeltAccountTest, ALimitOrAPauseHoldsItBack) {
  FeltAccount felt;
  felt.Use(GpuUse::kIdle, kA, At(0us));
  Boundary(felt, 0ms, {.runnable = true}, {});
  Boundary(felt, 4ms, {.runnable = true}, {});  // the policy chose nobody
  EXPECT_EQ(4000u, Us(felt, kA, Felt::kHeld));
  Boundary(felt, 4ms, {.paused = true}, {.paused = true});
  Boundary(felt, 9ms, {.paused = true}, {.paused = true});
  EXPECT_EQ(9000u, Us(felt, kA, Felt::kHeld));
  EXPECT_EQ(0u, Sum(felt.Of(kB))) << "none of its programs has launched anything";
}

TEST(FeltAccountTest, StampsOutsideOfTheIntervalAreNotBelieved) {
  FeltAccount felt;
  Boundary(felt, 10ms, {.runnable = true, .since = 10ms}, {.runnable = true, .since = 10ms});
  felt.Use(GpuUse::kRun, kB, At(10ms));
  Boundary(felt, 11ms, {.runnable = false, .since = 0ms}, {.runnable = true});
  Boundary(felt, 12ms, {.runnable = true, .since = 99ms}, {.runnable = true});
  EXPECT_EQ(2000u, Us(felt, kA, Felt::kThinking));
  EXPECT_EQ(2'000'000u, Sum(felt.Of(kA)));
}

TEST(FeltAccountTest, AVfOfTheSameNumberBeginsAnew) {
  FeltAccount felt;
  Boundary(felt, 0ms, {.runnable = true}, {.runnable = true});
  felt.Use(GpuUse::kRun, kB, At(0us));
  Boundary(felt, 1ms, {.runnable = true}, {.runnable = true});
  felt.Forget(kA);
  EXPECT_EQ(0u, Sum(felt.Of(kA)));
  EXPECT_EQ(1'000'000u, Sum(felt.Of(kB)));
  felt.Forget(VfId{7});
  EXPECT_EQ(0u, Sum(felt.Of(VfId{7})));
}

// Programs that launch, wait and think beside endless ones, through the real switcher: the parts are all of the time
// between the first launch and the last boundary at which there was work.
TEST(FeltAccountTest, ThePartsAreTheWholeOfTheActiveTime) {
  std::mt19937 random{5};
  for (int round = 0; round < 200; ++round) {
    SimWorlds worlds{kStart};
    const size_t count = 1 + random() % 4;
    for (size_t i = 0; i < count; ++i) {
      auto& vf = worlds.Add(50 + random() % 200, random() % 2 == 0 ? kEndless : Ns{random() % 500'000 + 1});
      if (vf.work == kEndless) continue;
      vf.kernel = vf.work;
      vf.thinks = {Ns{random() % 3'000'000}, Ns{random() % 100'000}};
    }
    worlds.switch_cost = Ns{random() % 50'000};
    StrictPolicy policy{PolicyOptions{.idle_grace = 50us, .anticipate_percent = 90}};
    Switcher switcher(worlds, policy, {});
    worlds.Drive(switcher, 200ms);
    for (uint32_t i = 0; i < count; ++i) {
      const VfAccount account = switcher.AccountAt(worlds.now()).Of(VfId{i});
      const uint64_t parts = account.active_gpu_ns + account.active_thinking_ns + account.active_others_ns +
                             account.active_switching_ns + account.active_stalled_ns + account.active_held_ns;
      ASSERT_EQ(parts, account.active_ns);
      // All of them launch at once; what is missing is at most the last turns, or thinking that has not ended.
      ASSERT_LE(account.active_ns, 200'000'000u);
      ASSERT_GE(account.active_ns, 200'000'000u - 40'000'000u) << round << " " << i;
      ASSERT_LE(account.active_gpu_ns, account.received_ns);
    }
  }
}

// One that computes as long as it thinks, alone: half is its own thinking, and nothing else keeps it from more.
TEST(FeltAccountTest, AloneWhatAProgramMissesIsItsOwnThinking) {
  SimWorlds worlds{kStart};
  auto& vf = worlds.Add(100, 1ms);
  vf.kernel = 1ms;
  vf.thinks = {1ms};
  StrictPolicy policy{PolicyOptions{}};
  Switcher switcher(worlds, policy, {});
  worlds.Drive(switcher, 1s);
  const VfAccount account = switcher.AccountAt(worlds.now()).Of(kA);
  EXPECT_NEAR(0.5, static_cast<double>(account.active_gpu_ns) / static_cast<double>(account.active_ns), 0.01);
  EXPECT_NEAR(0.5, static_cast<double>(account.active_thinking_ns) / static_cast<double>(account.active_ns), 0.01);
  EXPECT_EQ(0u, account.active_others_ns);
}

// Each turn's record says what became of the time since its VF's turn before.
TEST(FeltAccountTest, TheTraceSaysWhyATurnCameWhenItCame) {
  SimWorlds worlds{kStart};
  worlds.Add(100, kEndless, 2ms);
  auto& thinker = worlds.Add(100, 1ms, 2ms);
  thinker.kernel = 1ms;
  thinker.thinks = {5ms};
  StrictPolicy policy{PolicyOptions{}};
  SliceTrace trace{1024};
  Switcher switcher(worlds, policy, {});
  switcher.SetTrace(&trace);
  worlds.Drive(switcher, 100ms);
  SliceTrace::Reader reader{trace};
  size_t turns = 0;
  for (SliceRecord record; reader.Next(&record);) {
    if (record.vf == kA || record.start < At(10ms)) continue;
    ++turns;
    // Nobody says when it got work: it is seen at the boundary, and has its turn at once or after one of the other.
    EXPECT_GE(record.thought, 5ms);
    EXPECT_LE(record.thought, 7ms);
    EXPECT_LE(record.waited, 2ms);
  }
  EXPECT_GT(turns, 8u);
}

}  // namespace
}  // namespace vgpud
