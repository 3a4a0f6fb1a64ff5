// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/vgpud/gpu/slice_world_rig.h"

namespace vgpud::daemon {
namespace {

// Of this process.
char StateOfThread(pid_t tid) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", tid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

TEST_F(SliceWorldTest, AVfIsInTheRotationFromJoinToRemove) {
  EXPECT_TRUE(world_.TurnBoundary(kNow).empty());
  world_.Join({kVf, 300, 2ms});
  const auto vfs = world_.TurnBoundary(kNow);
  ASSERT_EQ(1u, vfs.size());
  EXPECT_EQ(kVf, vfs[0].vf);
  EXPECT_EQ(300u, vfs[0].weight);
  EXPECT_EQ(2ms, vfs[0].slice);
  EXPECT_FALSE(vfs[0].runnable);
  world_.Remove(kVf);
  EXPECT_TRUE(world_.TurnBoundary(kNow).empty());
}

TEST_F(SliceWorldTest, GrantCarriesDeadlineRunBitAndANewEpoch) {
  world_.Run(kVf, TimePoint{Ns{777}});
  const uint32_t first = page().grant.load();
  EXPECT_EQ(GrantPage::kRun, first & GrantPage::kRun);
  EXPECT_EQ(777u, page().deadline_ns.load());
  world_.Drain(kVf);
  EXPECT_EQ(0u, page().grant.load() & GrantPage::kRun);
  world_.Run(kVf, TimePoint{Ns{888}});
  EXPECT_NE(first, page().grant.load());
}

TEST_F(SliceWorldTest, ATurnWithoutForceEndsWhenItsLastExecutorHasLeft) {
  const Child first = Sleeper(), second = Sleeper();
  AddExecutor(1, 1, first);
  AddExecutor(2, 2, second);
  world_.Run(kVf, TimePoint::max());
  const uint32_t grant = page().grant.load();
  EXPECT_NE(grant, page().finish.load());
  SetSlot(1, ExecState::kRunning);
  SetSlot(2, ExecState::kReady);
  world_.Finish(kVf);
  EXPECT_EQ(grant, page().grant.load());
  EXPECT_EQ(grant, page().finish.load());
  EXPECT_FALSE(world_.Complete(WsState::kFinish, kVf));
  SetSlot(1, ExecState::kReady);
  EXPECT_TRUE(world_.Complete(WsState::kFinish, kVf));
  EXPECT_EQ(1u, world_.LatencyOf(kVf).overrun.count());
  world_.Drain(kVf);
  world_.Run(kVf, TimePoint::max());
  EXPECT_NE(page().grant.load(), page().finish.load());
}

TEST_F(SliceWorldTest, AnExecutorThatDiesWhileItMayFinishHoldsNobodyUp) {
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  world_.Run(kVf, TimePoint::max());
  SetSlot(1, ExecState::kRunning);
  world_.Finish(kVf);
  child.Kill(SIGKILL);
  while (!world_.Complete(WsState::kFinish, kVf)) {
  }
}

TEST_F(SliceWorldTest, APausedVfIsShownAsPausedAndIsNotRunnable) {
  VfView view{kVf};
  world_.Join(view);
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  SetSlot(1, ExecState::kReady);
  EXPECT_TRUE(Runnable());
  view.paused = true;
  world_.Change(view);
  EXPECT_FALSE(Runnable());
  EXPECT_TRUE(world_.TurnBoundary(kNow)[0].paused);
  EXPECT_FALSE(world_.WorkChanged());
  world_.SetParked(kVf, true);
  view.paused = false;
  world_.Change(view);
  EXPECT_TRUE(world_.TurnBoundary(kNow)[0].paused);
  world_.SetParked(kVf, false);
  EXPECT_TRUE(Runnable());
}

TEST_F(SliceWorldTest, WorkThatComesAfterTheDecisionIsSeen) {
  world_.Join({kVf});
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  EXPECT_FALSE(Runnable());
  EXPECT_FALSE(world_.WorkChanged());
  SetSlot(1, ExecState::kReady);
  EXPECT_TRUE(world_.WorkChanged());
  EXPECT_TRUE(Runnable());
  EXPECT_FALSE(world_.WorkChanged());
}

TEST_F(SliceWorldTest, OnlySlotsWithALiveExecutorOfOursCount) {
  world_.Join({kVf, 100, 0ns});
  SetSlot(5, ExecState::kRunning);
  EXPECT_FALSE(Runnable());
  world_.Drain(kVf);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  const Child child = Sleeper();
  AddExecutor(5, 1, child);
  EXPECT_TRUE(Runnable());
  EXPECT_FALSE(world_.Complete(WsState::kDrain, kVf));
  SetSlot(5, ExecState::kReady);
  EXPECT_TRUE(Runnable());
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  SetSlot(5, ExecState::kIdle);
  EXPECT_FALSE(Runnable());
}

TEST_F(SliceWorldTest, ALateGoodbyeDoesNotHitTheNextUserOfTheSlot) {
  world_.Join({kVf, 100, 0ns});
  const Child child = Sleeper();
  AddExecutor(5, 2, child);
  SetSlot(5, ExecState::kReady);
  world_.RemoveExecutor(kVf, 5, 1);
  EXPECT_TRUE(Runnable());
  world_.RemoveExecutor(kVf, 5, 2);
  EXPECT_FALSE(Runnable());
}

TEST_F(SliceWorldTest, WhoIsInASlotThatAnotherOneGetsIsKilledAndWaitedFor) {
  Child first = Sleeper(), second = Sleeper();
  AddExecutor(5, 1, first);
  AddExecutor(5, 2, second);
  world_.Drain(kVf);
  while (!world_.Complete(WsState::kDrain, kVf)) {
  }
  const auto ending = first.Reap();
  ASSERT_TRUE(ending) << "the drain was over before it had ended";
  EXPECT_EQ("signal 9", ending->text);
  EXPECT_FALSE(second.Reap());
}

TEST_F(SliceWorldTest, ParkingEndsAllExecutorsAndTakesTheVfOut) {
  world_.Join({kVf, 100, 0ns});
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  SetSlot(1, ExecState::kReady);
  world_.Park(kVf);
  EXPECT_EQ(1, parked_);
  EXPECT_EQ(std::vector{child.pid()}, killed_);
  EXPECT_FALSE(Runnable());
  world_.SetParked(kVf, false);
  EXPECT_TRUE(Runnable());
}

TEST_F(SliceWorldTest, WorkOnlyGrowsAlthoughExecutorsComeAndGo) {
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  Slot(1).kernels.store(7);
  EXPECT_EQ(7u, world_.WorkOf(kVf).kernels);
  Slot(1).kernels.store(9);
  world_.RemoveExecutor(kVf, 1, 1);
  Slot(1).kernels.store(0);
  AddExecutor(1, 2, child);
  Slot(1).kernels.store(2);
  EXPECT_EQ(11u, world_.WorkOf(kVf).kernels);
}

TEST_F(SliceWorldTest, CountersThatJumpOrGoBackAreNotBelieved) {
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  Slot(1).kernels.store(uint64_t{1} << 63);
  Slot(1).warp_instructions.store(~uint64_t{0});
  EXPECT_EQ(0u, world_.WorkOf(kVf).kernels);
  EXPECT_EQ(0u, world_.WorkOf(kVf).warp_instructions);
  Slot(1).kernels.store(5);
  EXPECT_EQ(0u, world_.WorkOf(kVf).kernels);
  Slot(1).kernels.store(6);
  EXPECT_EQ(1u, world_.WorkOf(kVf).kernels);
  EXPECT_EQ(3u, world_.ConductOf(kVf).bad_slots);
}

TEST_F(SliceWorldTest, AStateThatThereIsNotIsNoWorkAndIsCounted) {
  world_.Join({kVf});
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  SetSlot(1, ExecState{77});
  EXPECT_FALSE(Runnable());
  world_.Drain(kVf);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_EQ(1u, world_.ConductOf(kVf).bad_slots);
}

TEST_F(SliceWorldTest, AnExecutorThatSaysForAWholeTurnOfOthersThatItRunsIsCounted) {
  world_.Join({kVf});
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  SetSlot(1, ExecState::kRunning);
  (void)world_.TurnBoundary(kNow);
  EXPECT_EQ(0u, world_.ConductOf(kVf).out_of_turn) << "it may have been entering when the grant was taken back";
  (void)world_.TurnBoundary(kNow);
  EXPECT_EQ(1u, world_.ConductOf(kVf).out_of_turn);
  world_.Run(kVf, TimePoint::max());
  (void)world_.TurnBoundary(kNow);
  EXPECT_EQ(1u, world_.ConductOf(kVf).out_of_turn);
}

TEST_F(SliceWorldTest, ABellThatNeverStopsIsMutedUntilTheNextTurnOrForAWhile) {
  SlotPage& slots = slices_.slot_page();
  uint32_t heard = 0;
  for (; heard < 1000 && world_.Bell(kVf, kNow).word != nullptr; ++heard) Ring(slots);
  EXPECT_EQ(65u, heard);
  EXPECT_EQ(nullptr, world_.Bell(kVf, kNow).word);
  EXPECT_EQ(1u, world_.ConductOf(kVf).muted);
  world_.Run(kVf, TimePoint::max());
  EXPECT_NE(nullptr, world_.Bell(kVf, kNow).word);
  for (int ring = 0; ring < 100; ++ring) {
    Ring(slots);
    (void)world_.Bell(kVf, kNow);
  }
  EXPECT_EQ(2u, world_.ConductOf(kVf).muted);
  EXPECT_NE(nullptr, world_.Bell(kVf, kNow + 200ms).word);
}

TEST_F(SliceWorldTest, ABellThatWakesWithoutRingingIsMutedAsWell) {
  uint32_t heard = 0;
  for (; heard < 1000; ++heard) {
    const FutexWord bell = world_.Bell(kVf, kNow);
    if (bell.word == nullptr) break;
    EXPECT_EQ(0u, bell.seen);
    world_.Woken(bell.word);
  }
  EXPECT_EQ(65u, heard);
  EXPECT_EQ(1u, world_.ConductOf(kVf).muted);
}

TEST_F(SliceWorldTest, WhoWakesAWordIsKnownByItsPlace) {
  std::atomic<uint32_t> words[2] = {};
  const FutexWord both[] = {{&words[0], 0}, {&words[1], 0}};
  std::atomic<bool> over{false};
  std::thread waker([&] {
    while (!over) FutexWakeAll(&words[1]);
  });
  const FutexWaited waited = FutexWaitAny(both, MonotonicNs() + 20'000'000'000);
  over = true;
  waker.join();
  EXPECT_FALSE(waited.timed_out);
  if (!waited.woken) GTEST_SKIP() << "no futex_waitv here";
  EXPECT_EQ(1u, *waited.woken);
}

TEST_F(SliceWorldTest, AGrantWakesNoMoreThanTwiceTheThreadsThatExecutorsHave) {
  constexpr long kSleepers = 50, kOurs = 2 * (1 + 3);  // one that computes, three more
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  std::atomic<pid_t> tids[kSleepers] = {};
  std::vector<std::thread> threads;
  for (auto& tid : tids)
    threads.emplace_back([this, &tid] {
      tid = ::gettid();
      ::syscall(SYS_futex, &page().grant, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    });
  for (auto& tid : tids)
    while (tid == 0 || StateOfThread(tid) != 'S') std::this_thread::yield();
  world_.Run(kVf, TimePoint::max());
  EXPECT_EQ(kSleepers - kOurs, ::syscall(SYS_futex, &page().grant, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0));
  for (auto& thread : threads) thread.join();
}

TEST_F(SliceWorldTest, OnlyBellsOfVfsThatMayGetWorkAreListenedTo) {
  std::vector<FutexWord> bells;
  EXPECT_TRUE(world_.AllBells(kNow, &bells));
  EXPECT_TRUE(bells.empty()) << "not in the rotation";
  const Child child = Sleeper();
  AddExecutor(1, 1, child);
  world_.Join({kVf});
  EXPECT_TRUE(world_.AllBells(kNow, &bells));
  EXPECT_EQ(1u, bells.size());
  world_.SetParked(kVf, true);
  bells.clear();
  EXPECT_TRUE(world_.AllBells(kNow, &bells));
  EXPECT_TRUE(bells.empty());
  world_.SetParked(kVf, false);
  bells.resize(kMaxFutexWords);
  EXPECT_FALSE(world_.AllBells(kNow, &bells)) << "no room: somebody has to look at it";
}

TEST_F(SliceWorldTest, DrainsOfARunningExecutorAreTimedOthersAreNot) {
  world_.Join({kVf, 100, 2ms});
  const Child executor = Sleeper();
  AddExecutor(0, 1, executor);
  world_.Run(kVf, TimePoint{Ns{1}});
  SetSlot(0, ExecState::kReady);
  world_.Drain(kVf);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_EQ(0u, world_.LatencyOf(kVf).drain.count());

  world_.Run(kVf, TimePoint{Ns{1}});
  SetSlot(0, ExecState::kRunning);
  world_.Drain(kVf);
  EXPECT_FALSE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_EQ(0u, world_.LatencyOf(kVf).drain.count());
  SetSlot(0, ExecState::kReady);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  const VfStats::Latency latency = world_.LatencyOf(kVf);
  EXPECT_EQ(1u, latency.drain.count());
  EXPECT_EQ(1u, latency.overrun.count());
  EXPECT_GT(latency.overrun.max_ns(), latency.drain.max_ns());
}

}  // namespace
}  // namespace vgpud::daemon
