// SPDX-License-Identifier: Apache-2.0
// What the scheduler makes of slots and grants, without processes that compute: counters, bells, words of the page.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/gpu/slice_world.h"
#include "vgpud/host/child.h"
#include "vgpud/model/vf_statistics.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{Ns{5'000}};
constexpr VfId kVf{2};

class SliceFiguresTest : public testing::Test {
 protected:
  SliceFiguresTest() {
    auto memory = *MakeSliceMemory("a");
    slices_ = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
    world_.SetSchedulerCpu(7);
    world_.Add(kVf, "a", std::move(memory));
  }
  const GrantPage& page() { return slices_.grant_page(); }
  ExecSlot& Slot(uint32_t slot) { return slices_.slot_page().slots[slot]; }
  void SetSlot(uint32_t slot, ExecState state) { Slot(slot).state.store(static_cast<uint32_t>(state)); }
  void AddExecutor(uint32_t slot, uint64_t generation) {
    world_.AddExecutor(kVf, slot, {generation, sleeper_.pid(), *Dup(sleeper_.pidfd())});
  }

  Child sleeper_ = *Child::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "100"}, .files = {}});
  SliceView slices_;
  std::vector<TimePoint> boundaries_;
  int killed_ = 0;
  SliceWorld world_{10ms,
                    {.at_boundary = [this](TimePoint now) { boundaries_.push_back(now); },
                     .on_killed = [this](VfId, const std::string&, const SliceWorld::Hang&) { ++killed_; },
                     .on_parked = [](VfId) {}}};
};

TEST_F(SliceFiguresTest, ItsExecutorsSaySinceWhenAVfHasWorkOrNone) {
  const auto says = [&](bool program, uint64_t since_ns) {
    const Activity activity = world_.ActivityOf(kVf);
    EXPECT_EQ(program, activity.program);
    EXPECT_EQ(program ? since_ns : ToNs(activity.since), ToNs(activity.since));
  };
  says(false, 0);
  EXPECT_FALSE(world_.ActivityOf(VfId{9}).program);
  AddExecutor(0, 1);
  AddExecutor(5, 2);
  Slot(0).since_ns = 300;
  Slot(5).since_ns = 200;
  says(true, 300);  // the last that had work
  SetSlot(5, ExecState::kReady);
  says(true, 200);
  SetSlot(0, ExecState::kRunning);
  says(true, 200);  // the first that got some
  Slot(0).since_ns = 100;
  says(true, 100);
  Slot(0).since_ns = Slot(5).since_ns = ~uint64_t{0};
  EXPECT_TRUE(world_.ActivityOf(kVf).since > TimePoint{Ns{1} * INT64_C(9'000'000'000'000'000'000)});
  world_.RemoveExecutor(kVf, 0, 1);
  world_.RemoveExecutor(kVf, 5, 2);
  says(false, 0);
}

// A second VF beside kVf, which has an executor.
struct Neighbour {
  Neighbour(SliceWorld& world, const Child& sleeper) {
    auto memory = *MakeSliceMemory("b");
    slices = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
    world.Add(VfId{0}, "b", std::move(memory));
    world.AddExecutor(VfId{0}, 9, {1, sleeper.pid(), *Dup(sleeper.pidfd())});
  }
  SliceView slices;
};

TEST_F(SliceFiguresTest, WhoNeedsMemoryOfTheCardHasTheOthersMakeRoom) {
  AddExecutor(3, 1);
  Neighbour neighbour(world_, sleeper_);
  const auto told = [&] {
    world_.ShareCard();
    return std::pair{page().make_room.load(), neighbour.slices.grant_page().make_room.load()};
  };
  EXPECT_EQ(std::pair(0u, 0u), told());
  slices_.slot_page().memory[3].wanted = 5;
  EXPECT_EQ(std::pair(0u, 0u), told()) << "who does not stand in line needs nothing";
  slices_.slot_page().slots[3].state.store(static_cast<uint32_t>(ExecState::kReady));
  neighbour.slices.slot_page().slots[9].state.store(static_cast<uint32_t>(ExecState::kRunning));
  EXPECT_EQ(std::pair(0u, 1u), told());
  neighbour.slices.slot_page().memory[9].wanted = 7;
  EXPECT_EQ(std::pair(1u, 1u), told());
  world_.SetParked(kVf, true);
  EXPECT_EQ(std::pair(1u, 0u), told()) << "who is paused needs nothing now";
  world_.SetParked(kVf, false);
  EXPECT_EQ(std::pair(1u, 1u), told());
  slices_.slot_page().memory[3].wanted = 0;
  EXPECT_EQ(std::pair(1u, 0u), told());
  neighbour.slices.slot_page().memory[9].wanted = 0;
  EXPECT_EQ(std::pair(0u, 0u), told());
  slices_.slot_page().memory[4].wanted = 5;
  EXPECT_EQ(std::pair(0u, 0u), told()) << "a slot without an executor";
}

TEST_F(SliceFiguresTest, WhoWaitsForMemoryOfTheCardHearsWhenOthersHaveMadeRoom) {
  AddExecutor(3, 1);
  Neighbour neighbour(world_, sleeper_);
  const auto told = [&] {
    world_.ShareCard();
    return std::pair{page().room.load(), neighbour.slices.grant_page().room.load()};
  };
  ExecMemory& others = neighbour.slices.slot_page().memory[9];
  slices_.slot_page().slots[3].state.store(static_cast<uint32_t>(ExecState::kRunning));
  EXPECT_EQ(std::pair(0u, 0u), told());
  EXPECT_FALSE(world_.someone_wants_memory());
  others.evictions = 1;
  EXPECT_EQ(std::pair(0u, 0u), told()) << "nobody waits";
  slices_.slot_page().memory[3].wanted = 5;
  EXPECT_EQ(std::pair(0u, 0u), told()) << "that was before";
  EXPECT_TRUE(world_.someone_wants_memory());
  others.evictions = 2;
  EXPECT_EQ(std::pair(1u, 0u), told());
  EXPECT_EQ(std::pair(1u, 0u), told()) << "once";
}

TEST_F(SliceFiguresTest, WhatMovesOffTheCardIsAddedUp) {
  ExecMemory& memory = slices_.slot_page().memory[3];
  memory.evictions = 100;
  AddExecutor(3, 1);
  memory.evictions = 102;
  memory.evicted_bytes = 4000;
  memory.evicting_ns = 50;
  memory.returned_bytes = 3000;
  memory.returning_ns = 40;
  memory.on_card = 10;
  memory.off_card = 20;
  const VfStats::Work work = world_.WorkOf(kVf);
  EXPECT_EQ(2u, work.evictions);
  EXPECT_EQ(4000u, work.evicted_bytes);
  EXPECT_EQ(50u, work.evicting_ns);
  EXPECT_EQ(3000u, work.returned_bytes);
  EXPECT_EQ(40u, work.returning_ns);
  EXPECT_EQ(10u, work.movable_bytes);
  EXPECT_EQ(20u, work.moved_bytes);
  memory.evictions = 1;
  EXPECT_EQ(2u, world_.WorkOf(kVf).evictions) << "it went back";
}

struct CounterRow {
  const char* name;
  std::function<void(ExecSlot&, uint64_t)> set;
  uint64_t VfStats::Work::*total;
  uint64_t most_per_ns;
  uint64_t most_at_once;
};
const std::vector<CounterRow>& Rows() {
  using Work = VfStats::Work;
  static const std::vector<CounterRow> rows = {
      {"kernels", [](ExecSlot& s, uint64_t v) { s.kernels = v; }, &Work::kernels, 1, 0},
      {"warp_instructions", [](ExecSlot& s, uint64_t v) { s.warp_instructions = v; }, &Work::warp_instructions, 64, 0},
      {"preempts", [](ExecSlot& s, uint64_t v) { s.preempts = static_cast<uint32_t>(v); }, &Work::executor_preempts, 1,
       0},
      {"host_work_ns", [](ExecSlot& s, uint64_t v) { s.host_work_ns = v; }, &Work::host_work_ns, 3, 0},
      {"module_loads", [](ExecSlot& s, uint64_t v) { s.module_loads = v; }, &Work::module_loads, 1, 0},
      {"module_bytes", [](ExecSlot& s, uint64_t v) { s.module_bytes = v; }, &Work::module_bytes, 64,
       uint64_t{512} << 20},
      {"core_wait_ns", [](ExecSlot& s, uint64_t v) { s.core_wait_ns = v; }, &Work::core_wait_ns, 1, 1'000'000'000}};
  return rows;
}

TEST_F(SliceFiguresTest, EachCounterGoesOnFromWhereItsSlotWasAndAllSlotsAddUp) {
  for (const CounterRow& row : Rows())
    for (const uint32_t slot : {0u, 63u}) row.set(Slot(slot), 500);
  AddExecutor(0, 1);
  AddExecutor(63, 2);
  for (const CounterRow& row : Rows()) EXPECT_EQ(0u, world_.WorkOf(kVf).*row.total) << row.name;
  for (const CounterRow& row : Rows()) {
    row.set(Slot(0), 505);
    row.set(Slot(63), 507);
  }
  for (const CounterRow& row : Rows()) EXPECT_EQ(12u, world_.WorkOf(kVf).*row.total) << row.name;
  EXPECT_EQ(0u, world_.ConductOf(kVf).bad_slots);
}

std::vector<uint64_t> Faults(const VfStats::Work& work) {
  std::vector<uint64_t> faults;
  for (size_t row = 0; row < std::size(kKernelErrors); ++row) faults.push_back(work.faults.of(row));
  return faults;
}

TEST_F(SliceFiguresTest, KernelsThatFailAreCountedByTheirError) {
  const auto report = [this](uint32_t slot, uint32_t times, uint32_t error) {
    slices_.slot_page().clocks[slot].faults = times << 16 | error;
  };
  report(0, 5, 700);
  AddExecutor(0, 1);
  AddExecutor(63, 2);
  EXPECT_EQ(std::vector<uint64_t>(std::size(kKernelErrors)), Faults(world_.WorkOf(kVf))) << "of the one before";
  report(0, 6, 700);
  report(63, 2, 719);
  EXPECT_EQ((std::vector<uint64_t>{1, 0, 0, 0, 0, 0, 0, 0, 2, 0}), Faults(world_.WorkOf(kVf)));
  EXPECT_EQ((std::vector<uint64_t>{1, 0, 0, 0, 0, 0, 0, 0, 2, 0}), Faults(world_.WorkOf(kVf))) << "once";
  report(0, 7, 0xffff);
  EXPECT_EQ((std::vector<uint64_t>{1, 0, 0, 0, 0, 0, 0, 0, 2, 1}), Faults(world_.WorkOf(kVf)))
      << "there is no such error";
  report(0, 0xffff, 710);
  (void)world_.WorkOf(kVf);
  report(0, 0, 710);
  EXPECT_EQ(0xffffu - 7 + 1, Faults(world_.WorkOf(kVf))[2]) << "around and around";
  EXPECT_EQ(0u, world_.ConductOf(kVf).bad_slots);
}

TEST_F(SliceFiguresTest, EachCounterThatGoesBackIsCountedOnce) {
  AddExecutor(0, 1);
  for (const CounterRow& row : Rows()) row.set(Slot(0), 9);
  (void)world_.WorkOf(kVf);
  for (const CounterRow& row : Rows()) row.set(Slot(0), 8);
  for (const CounterRow& row : Rows()) EXPECT_EQ(9u, world_.WorkOf(kVf).*row.total) << row.name;
  EXPECT_EQ(Rows().size(), world_.ConductOf(kVf).bad_slots);
}

// So much a nanosecond since the last look is the most that is believed.
TEST_F(SliceFiguresTest, WhatIsBelievedGrowsWithTheTime) {
  constexpr uint64_t kWait = 5'000'000;
  uint64_t generation = 0, bad = 0;
  for (const CounterRow& row : Rows()) {
    const auto settle = [&] {
      row.set(Slot(1), 0);
      AddExecutor(1, ++generation);
      (void)world_.WorkOf(kVf);
    };
    const uint64_t before = world_.WorkOf(kVf).*row.total;
    settle();
    const uint64_t looked = MonotonicNs();
    while (MonotonicNs() - looked < kWait) {
    }
    const uint64_t most = row.most_at_once + row.most_per_ns * kWait;
    row.set(Slot(1), most);
    EXPECT_EQ(before + most, world_.WorkOf(kVf).*row.total) << row.name;
    EXPECT_EQ(bad, world_.ConductOf(kVf).bad_slots) << row.name;
    world_.RemoveExecutor(kVf, 1, generation);
    // Half a unit a nanosecond more is too much, unless this thread was away in between.
    uint64_t expected = before + most;
    for (bool sure = false; !sure;) {
      row.set(Slot(1), 0);
      const uint64_t start = MonotonicNs();
      AddExecutor(1, ++generation);
      while (MonotonicNs() - start < kWait) {
      }
      const uint64_t reckoned = MonotonicNs() - start + 20'000;
      row.set(Slot(1), row.most_at_once + row.most_per_ns * reckoned + reckoned / 2);
      const uint64_t now = world_.WorkOf(kVf).*row.total;
      sure = MonotonicNs() - start <= reckoned;
      if (sure) {
        EXPECT_EQ(expected, now) << row.name;
        EXPECT_EQ(bad + 1, world_.ConductOf(kVf).bad_slots) << row.name;
      }
      expected = now;
      bad = world_.ConductOf(kVf).bad_slots;
      world_.RemoveExecutor(kVf, 1, generation);
    }
  }
}

TEST_F(SliceFiguresTest, HostWorkOfALongLoadIsBelievedAtItsEnd) {
  AddExecutor(1, 1);
  const uint64_t start = MonotonicNs();
  while (MonotonicNs() - start < 5'000'000) (void)world_.WorkOf(kVf);
  Slot(1).host_work_ns = 15'000'000;
  EXPECT_EQ(15'000'000u, world_.WorkOf(kVf).host_work_ns);
  Slot(1).host_work_ns = 15'000'000 + 3'600'000'000'000;
  EXPECT_EQ(15'000'000u, world_.WorkOf(kVf).host_work_ns) << "an hour in no time";
}

TEST_F(SliceFiguresTest, TheGrantSaysSinceWhenItIs) {
  const uint64_t before = MonotonicNs();
  world_.Run(kVf, kNow);
  EXPECT_GE(page().granted_ns, before);
  EXPECT_LE(page().granted_ns, MonotonicNs());
}

TEST_F(SliceFiguresTest, WhatAnExecutorDidInItsTurnIsTakenDownAtItsEnd) {
  AddExecutor(1, 1);
  Slot(1).kernels = 5;
  world_.Save(kVf);
  Slot(1).kernels = 3;
  EXPECT_EQ(5u, world_.WorkOf(kVf).kernels);
}

TEST_F(SliceFiguresTest, GrantsCountByTwoAndBitZeroIsRun) {
  EXPECT_EQ(0u, page().grant);
  EXPECT_EQ(0u, world_.turns());
  for (uint32_t turn = 1; turn <= 3; ++turn) {
    world_.Run(kVf, TimePoint{Ns{777}});
    EXPECT_EQ(2 * turn + 1, page().grant);
    EXPECT_EQ(0u, page().finish);
    EXPECT_EQ(turn, world_.turns());
    world_.Finish(kVf);
    EXPECT_EQ(2 * turn + 1, page().finish);
    world_.Drain(kVf);
    EXPECT_EQ(2 * turn, page().grant);
  }
  world_.Run(kVf, TimePoint{Ns{777}});
  world_.Flr(kVf);
  EXPECT_EQ(8u, page().grant);
}

TEST_F(SliceFiguresTest, TheGrantPageSaysWhatVgpudWantsToHear) {
  EXPECT_EQ(1u, page().notify) << "of stops";
  EXPECT_EQ(7u, page().scheduler_cpu);
  world_.WatchForWork(true);
  EXPECT_EQ(2u, page().notify) << "of new work, too";
  world_.WatchForWork(false);
  EXPECT_EQ(1u, page().notify);
  world_.WatchForWork(kVf, true);
  EXPECT_EQ(2u, page().notify);
  world_.WatchForWork(VfId{0}, false);
  EXPECT_EQ(2u, page().notify);
  world_.WatchForWork(kVf, false);
  EXPECT_EQ(1u, page().notify);
}

TEST_F(SliceFiguresTest, OfAVfThatThereIsNotNothingIsKnownAndNothingHappens) {
  for (const VfId none : {VfId{0}, VfId{3}, VfId{1000}}) {
    world_.Join({none});
    world_.Change({none});
    world_.SetParked(none, true);
    world_.RemoveExecutor(none, 1, 1);
    world_.AddExecutor(none, 1, {1, sleeper_.pid(), *Dup(sleeper_.pidfd())});
    world_.Run(none, kNow);
    world_.Finish(none);
    world_.Drain(none);
    world_.Save(none);
    world_.Flr(none);
    world_.Park(none);
    EXPECT_TRUE(world_.Complete(WsState::kDrain, none));
    EXPECT_FALSE(world_.Excused(none));
    EXPECT_FALSE(world_.HasWork(none));
    EXPECT_EQ(nullptr, world_.Bell(none, kNow).word);
    EXPECT_EQ(0u, world_.WorkOf(none).kernels);
    EXPECT_EQ(0u, world_.ConductOf(none).bad_slots);
    EXPECT_EQ(0u, world_.LatencyOf(none).drain.count());
    world_.Remove(none);
  }
  EXPECT_EQ(0u, world_.turns());
  EXPECT_EQ(0, killed_);
  EXPECT_TRUE(world_.TurnBoundary(kNow).empty());
  EXPECT_EQ(std::vector<TimePoint>{kNow}, boundaries_);
}

TEST_F(SliceFiguresTest, FiguresBeginAtNothing) {
  const VfStats::Work work;
  EXPECT_EQ(0u, work.kernels + work.warp_instructions + work.executor_preempts + work.host_work_ns + work.module_loads +
                    work.module_bytes + work.core_wait_ns);
  const VfStats::Conduct conduct;
  EXPECT_EQ(0u, conduct.bad_slots + conduct.out_of_turn + conduct.muted);
  const SliceWorld::Hang hang;
  EXPECT_EQ(0ns, hang.since_told + hang.computed + hang.waited);
  EXPECT_FALSE(hang.asleep || hang.out_of_time);
  const SliceWorld::Executor executor;
  EXPECT_EQ(0u, executor.generation);
  EXPECT_EQ(1u, executor.threads);
  EXPECT_FALSE(executor.killed || executor.marked);
  const VfStats vf;
  for (const VfStatistic& row : VfStatistics()) EXPECT_EQ(0u, row.get(vf));
  const GpuStats gpu;
  EXPECT_EQ(0u, gpu.now_ns + gpu.round + gpu.switch_ns + gpu.idle_ns + gpu.run_ns + gpu.stall_ns + gpu.leaving_ns +
                    gpu.impossible_events);
  EXPECT_FALSE(gpu.fifo);
  EXPECT_EQ(65'536u, GpuThread::Options{}.trace_slices);
  EXPECT_EQ(10u, Waiter::Options{}.max_spin_percent);
  EXPECT_EQ(10, Waiter::Options{}.fifo_priority);
  EXPECT_FALSE(Waiter::Options{}.keep_cpu_awake);
}

TEST_F(SliceFiguresTest, OnlyTheStatesInWhichExecutorsLeaveWaitForThem) {
  AddExecutor(1, 1);
  world_.Run(kVf, TimePoint::max());
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  const std::pair<WsState, bool> kStates[] = {
      {WsState::kOff, true},    {WsState::kLoad, true}, {WsState::kRun, true},  {WsState::kFinish, false},
      {WsState::kDrain, false}, {WsState::kSave, true}, {WsState::kFlr, false}, {WsState::kParked, true}};
  for (const auto& [state, complete] : kStates)
    EXPECT_EQ(complete, world_.Complete(state, kVf)) << static_cast<int>(state);
}

TEST_F(SliceFiguresTest, AGpuTakenBackBeforeTheEndOfTheSliceIsNoOverrun) {
  AddExecutor(1, 1);
  world_.Run(kVf, TimePoint::max());
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  SetSlot(1, ExecState::kReady);
  EXPECT_TRUE(world_.Complete(WsState::kDrain, kVf));
  EXPECT_EQ(1u, world_.LatencyOf(kVf).drain.count());
  EXPECT_EQ(0u, world_.LatencyOf(kVf).overrun.count());
  EXPECT_EQ(0u, world_.slice_ends().count());
  EXPECT_EQ(0ns, world_.HostDelay(kVf));
  world_.Run(kVf, TimePoint{Ns{1}});
  world_.Drain(kVf);
  EXPECT_EQ(1u, world_.slice_ends().count());
  EXPECT_GT(world_.slice_ends().max_ns(), 1'000'000'000u) << "since 1 ns after the host was started";
}

TEST_F(SliceFiguresTest, ATurnThatFindsNobodyOnTheGpuHasNothingToFinish) {
  AddExecutor(1, 1);
  world_.Run(kVf, TimePoint::max());
  SetSlot(1, ExecState::kReady);
  world_.Finish(kVf);
  EXPECT_TRUE(world_.Complete(WsState::kFinish, kVf));
  EXPECT_EQ(0u, world_.LatencyOf(kVf).overrun.count());
}

TEST_F(SliceFiguresTest, OneThatIsKilledIsKilledOnce) {
  AddExecutor(1, 1);
  SetSlot(1, ExecState::kRunning);
  world_.Drain(kVf);
  world_.Park(kVf);
  world_.Park(kVf);
  EXPECT_EQ(1, killed_);
}

TEST_F(SliceFiguresTest, AMutedBellIsHeardAgainAfter100Milliseconds) {
  constexpr TimePoint kFirst{10s};
  for (int ring = 0; ring < 70; ++ring) {
    Ring(slices_.slot_page());
    (void)world_.Bell(kVf, kFirst);
  }
  Ring(slices_.slot_page());
  EXPECT_EQ(nullptr, world_.Bell(kVf, kFirst + 100ms - 1ns).word);
  EXPECT_NE(nullptr, world_.Bell(kVf, kFirst + 100ms).word);
  EXPECT_EQ(1u, world_.ConductOf(kVf).muted);
}

TEST_F(SliceFiguresTest, SixtyFourRingsInATurnAreHeard) {
  constexpr TimePoint kFirst{10s};
  for (int turn = 0; turn < 3; ++turn) {
    world_.Run(kVf, TimePoint::max());
    for (int ring = 0; ring < 64; ++ring) {
      Ring(slices_.slot_page());
      EXPECT_NE(nullptr, world_.Bell(kVf, kFirst).word) << ring;
    }
  }
  EXPECT_EQ(0u, world_.ConductOf(kVf).muted);
}

TEST_F(SliceFiguresTest, ABellSaysWhatItSaidWhenItWasAskedFor) {
  const FutexWord silent = world_.Bell(kVf, kNow);
  EXPECT_EQ(0u, silent.seen);
  Ring(slices_.slot_page());
  Ring(slices_.slot_page());
  const FutexWord rung = world_.Bell(kVf, kNow);
  EXPECT_EQ(silent.word, rung.word);
  EXPECT_EQ(2u, rung.seen);
}

TEST_F(SliceFiguresTest, WorkIsWhatIsReadyOrRunning) {
  AddExecutor(1, 1);
  const std::pair<ExecState, bool> kStates[] = {
      {ExecState::kNone, false}, {ExecState::kIdle, false}, {ExecState::kReady, true}, {ExecState::kRunning, true}};
  world_.Join({kVf});
  for (const auto& [state, work] : kStates) {
    SetSlot(1, state);
    EXPECT_EQ(work, world_.HasWork(kVf));
    EXPECT_EQ(work, world_.TurnBoundary(kNow)[0].runnable);
    EXPECT_FALSE(world_.WorkChanged());
  }
  SetSlot(1, ExecState::kIdle);
  EXPECT_TRUE(world_.WorkChanged()) << "it has lost its work";
  EXPECT_EQ(0u, world_.ConductOf(kVf).bad_slots);
}

}  // namespace
}  // namespace vgpud::daemon
