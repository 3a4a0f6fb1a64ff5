// SPDX-License-Identifier: Apache-2.0
// Executors that do not leave the GPU in time: who is killed, who is left behind, who pays.
#include <sched.h>

#include "base/clock.h"
#include "tests/unit/vgpud/gpu/slice_world_rig.h"

namespace vgpud::daemon {
namespace {

TEST_F(SliceWorldTest, FlrKillsExactlyWhatIsStillRunning) {
  Child hung = Sleeper();
  const Child good = Sleeper();
  AddExecutor(1, 1, hung);
  AddExecutor(2, 2, good);
  SetSlot(1, ExecState::kRunning);
  SetSlot(2, ExecState::kReady);
  world_.Flr(kVf);
  EXPECT_EQ(std::vector{hung.pid()}, killed_);
  while (!world_.Complete(WsState::kFlr, kVf)) {
  }
  EXPECT_EQ("signal 9", hung.Reap()->text);
}

TEST_F(SliceWorldTest, FlrSparesAnExecutorThatHasJustEnteredBesideAHungOne) {
  const Child hung =
      *Child::Spawn({.program = "/bin/sh", .arguments = {"sh", "-c", "while :; do :; done"}, .files = {}});
  const Child enters = Sleeper();
  AddExecutor(1, 1, hung);
  AddExecutor(2, 2, enters);
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  while (world_.Excused(kVf)) {
  }
  SetSlot(2, ExecState::kRunning);
  world_.Flr(kVf);
  EXPECT_EQ(std::vector{hung.pid()}, killed_);
  EXPECT_GE(last_hang_.computed, 5ms);
  EXPECT_GE(last_hang_.since_told, last_hang_.computed / 2);
  EXPECT_FALSE(last_hang_.out_of_time);
}

// It finds the grant taken back while it enters, and is given no core just then.
TEST_F(SliceWorldTest, WhatAnExecutorComputedInEarlierTurnsIsNoProofOfAHang) {
  const Child computes =
      *Child::Spawn({.program = "/bin/sh", .arguments = {"sh", "-c", "while :; do :; done"}, .files = {}});
  ExecutorClock clock(computes.pid(), 3);
  AddExecutor(1, 1, computes);
  SetSlot(1, ExecState::kReady);
  world_.Drain(kVf);
  while (clock.ProcessCpuNs() < 50'000'000) {
  }
  SetSlot(1, ExecState::kRunning);
  EXPECT_TRUE(world_.Excused(kVf));
  while (world_.Excused(kVf)) {
  }
  world_.Flr(kVf);
  EXPECT_EQ(std::vector{computes.pid()}, killed_);
}

TEST_F(SliceWorldTest, AnExecutorThatSleepsWhileItSaysThatItRunsHasNoExcuse) {
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  const uint64_t start = MonotonicNs();
  while (world_.Excused(kVf)) ASSERT_LT(MonotonicNs() - start, 10'000'000'000u);
  world_.Flr(kVf);
  EXPECT_EQ(std::vector{child.pid()}, killed_);
  EXPECT_TRUE(last_hang_.asleep);
  EXPECT_FALSE(last_hang_.out_of_time);
  EXPECT_LT(last_hang_.computed, 25ms);
}

// Two endless loops on one CPU, of which the first gets nothing.
class StarvedExecutor : public SliceWorldTest {
 protected:
  static Child Loop() {
    return *Child::Spawn({.program = "/bin/sh", .arguments = {"sh", "-c", "while :; do :; done"}, .files = {}});
  }
  void SetUp() override {
    cpu_set_t allowed, one;
    ASSERT_EQ(0, ::sched_getaffinity(0, sizeof allowed, &allowed));
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
    for (const pid_t pid : {starved.pid(), spins.pid()}) ASSERT_EQ(0, ::sched_setaffinity(pid, sizeof one, &one));
    const sched_param none{}, first{.sched_priority = 1};
    ASSERT_EQ(0, ::sched_setscheduler(starved.pid(), SCHED_IDLE, &none));
    // Whatever else this machine does.
    if (::sched_setscheduler(spins.pid(), SCHED_FIFO, &first) != 0) GTEST_SKIP() << "SCHED_FIFO is not allowed here";
  }
  const Child starved = Loop();
  Child spins = Loop();
};

TEST_F(StarvedExecutor, OfItsOwnVfHasNoExcuse) {
  AddExecutor(1, 1, starved);
  AddExecutor(2, 2, spins);
  SetSlot(1, ExecState::kRunning);
  SetSlot(2, ExecState::kReady);
  world_.Drain(kVf);
  const uint64_t start = MonotonicNs();
  while (world_.Excused(kVf)) ASSERT_LT(MonotonicNs() - start, 60'000'000'000u);
  world_.Flr(kVf);
  EXPECT_EQ(std::vector{starved.pid()}, killed_);
  EXPECT_LT(last_hang_.computed, 30ms) << "it is not for what it computed";
  EXPECT_FALSE(last_hang_.out_of_time);
}

// Nobody is killed for time that it did not get, and nobody waits for it.
TEST_F(StarvedExecutor, IsLeftBehindAndIsKilledOnlyIfItGoesOnWhenItHasACpu) {
  world_.ComputesOnCpu();
  world_.Join({kVf});
  AddExecutor(1, 1, starved);
  SetSlot(1, ExecState::kRunning);
  world_.Run(kVf, TimePoint{Ns{1}});
  world_.Drain(kVf);
  const uint64_t start = MonotonicNs();
  while (!world_.LeaveBehind(kVf)) {
    ASSERT_TRUE(world_.Excused(kVf)) << "it had no CPU";
    ASSERT_LT(MonotonicNs() - start, 60'000'000'000u);
  }
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  const VfStats::Late late = world_.LateOf(kVf);
  EXPECT_EQ(1u, late.left_behind);
  EXPECT_EQ(1u, late.turns);
  EXPECT_GE(late.cpu_wait_ns, 5'000'000u);
  EXPECT_GT(late.cpu_wait_ns, late.computed_ns);
  EXPECT_GE(world_.HostDelay(kVf), 5ms);
  (void)world_.TurnBoundary(kNow);
  (void)world_.TurnBoundary(kNow);
  EXPECT_EQ(0u, world_.ConductOf(kVf).out_of_turn) << "it says what vgpud knows";
  EXPECT_TRUE(killed_.empty());
  spins.Kill(SIGKILL);
  while (killed_.empty() && MonotonicNs() - start < 120'000'000'000u) (void)world_.TurnBoundary(kNow);
  EXPECT_EQ(std::vector{starved.pid()}, killed_);
  EXPECT_GE(last_hang_.computed, 30ms);
}

TEST_F(StarvedExecutor, ThatLeavesLaterIsAsIfNothingHadBeen) {
  world_.ComputesOnCpu();
  world_.Join({kVf});
  AddExecutor(1, 1, starved);
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  const uint64_t start = MonotonicNs();
  while (!world_.LeaveBehind(kVf)) ASSERT_LT(MonotonicNs() - start, 60'000'000'000u);
  EXPECT_TRUE(Runnable()) << "it has work left";
  world_.Run(kVf, TimePoint::max());
  world_.Finish(kVf);
  EXPECT_FALSE(world_.Complete(WsState::kFinish, kVf)) << "it is its turn";
  SetSlot(1, ExecState::kReady);
  EXPECT_TRUE(world_.Complete(WsState::kFinish, kVf));
  EXPECT_TRUE(killed_.empty());
}

// Where kernels run on a card, an executor that has no CPU says nothing of them.
TEST_F(StarvedExecutor, IsWaitedForWhereItDoesNotComputeItself) {
  AddExecutor(1, 1, starved);
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  const uint64_t start = MonotonicNs();
  while (MonotonicNs() - start < 20'000'000) EXPECT_FALSE(world_.LeaveBehind(kVf));
  EXPECT_FALSE(world_.Complete(WsState::kDrain, kVf));
}

TEST_F(SliceWorldTest, NapsAreNoExcuse) {
  const Child child =
      *Child::Spawn({.program = "/bin/sh", .arguments = {"sh", "-c", "while :; do sleep 0.001; done"}, .files = {}});
  AddExecutor(1, 1, child);
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  const uint64_t start = MonotonicNs();
  while (world_.Excused(kVf)) ASSERT_LT(MonotonicNs() - start, 10'000'000'000u);
  world_.Flr(kVf);
  EXPECT_TRUE(last_hang_.asleep || last_hang_.computed >= 5ms);
}

TEST_F(SliceWorldTest, WhoLeftAtTheDeadlineIsNotChargedForTheSchedulersLateness) {
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  world_.Run(kVf, TimePoint{Ns{1}});
  SetSlot(1, ExecState::kReady);
  world_.Drain(kVf);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_GT(world_.HostDelay(kVf), 1ms);
  world_.Run(kVf, TimePoint{Ns{1}});
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  SetSlot(1, ExecState::kReady);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_EQ(0ns, world_.HostDelay(kVf)) << "it was on the GPU all the time, and waited for nothing";
}

}  // namespace
}  // namespace vgpud::daemon
