// SPDX-License-Identifier: Apache-2.0
// Executors that do not leave the GPU in time: who hangs, who has no CPU, and where the time went.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/slice_world.h"

namespace vgpud::daemon {
namespace {

// Between two looks at an executor that was left behind.
constexpr uint64_t kLookBehindEveryNs = 5'000'000;

}  // namespace

void SliceWorld::Mark(World& world, Executor& executor) {
  if (std::exchange(executor.marked, true)) return;
  if (!vf_cpu_ns_) {
    vf_cpu_ns_ = CpuNs(world);
    stolen_.Mark();
  }
  executor.clock.Mark();
}

uint64_t SliceWorld::CpuNs(const World& world) {
  uint64_t all = 0;
  ForEachBit(world.live, [&](uint32_t slot) { all += world.executors[slot].clock.ProcessCpuNs(); });
  return all;
}

uint64_t SliceWorld::OwnCpuNs(const World& world) const {
  const uint64_t now = CpuNs(world);
  return vf_cpu_ns_ ? now - std::min(now, *vf_cpu_ns_) : 0;
}

Ns SliceWorld::WaitedForCpu(World& world) const {
  uint64_t waited = ~uint64_t{0};
  ForEachBit(last_running_ & world.live, [&](uint32_t slot) {
    const Executor& executor = world.executors[slot];
    waited = std::min(waited, executor.marked ? executor.clock.SinceMark().waited_ns : 0);
  });
  if (waited == ~uint64_t{0} || !vf_cpu_ns_) return Ns{0};
  // The CPU could have been the waiting thread's.
  const uint64_t own = OwnCpuNs(world);
  return Ns{static_cast<int64_t>(waited - std::min(waited, own))};
}

bool SliceWorld::MustLeave(const World& world, uint32_t slot) {
  const Executor& executor = world.executors[slot];
  return IsRunning(world, slot) && !IsOff(executor) && !executor.behind && !executor.clock.IsEnding();
}

LeaveFigures SliceWorld::FiguresOf(World& world, Executor& executor) {
  Mark(world, executor);
  const ExecutorClock::Times since = executor.clock.SinceMark();
  const uint64_t own = OwnCpuNs(world);
  return {.elapsed_ns = since.elapsed_ns,
          .cpu_ns = since.cpu_ns,
          .waited_ns = since.waited_ns,
          .others_ns = own - std::min(own, since.cpu_ns),
          .stolen_ns = stolen_.MostSinceMark(),
          .ready = since.ready,
          .known = since.known};
}

// Each thread of an executor sees the revoke after one warp instruction, if it computes at all.
bool SliceWorld::IsHung(World& world, uint32_t slot) {
  if (!MustLeave(world, slot)) return false;
  const LeaveFigures figures = FiguresOf(world, world.executors[slot]);
  const auto timeout = static_cast<uint64_t>(preempt_timeout_.count());
  if (JudgeLeaving(figures, timeout) == Leaving::kHangs) return true;
  if (figures.cpu_ns >= timeout / 2 && (std::exchange(given_more_, given_more_ | uint64_t{1} << slot) >> slot & 1) == 0)
    ++world.late.more_time;
  return false;
}

bool SliceWorld::Excused(VfId vf) {
  World* world = Find(vf);
  if (world == nullptr) return false;
  bool excused = true;
  ForEachBit(world->live, [&](uint32_t slot) { excused &= !IsHung(*world, slot); });
  return excused;
}

// It finishes one warp instruction when it gets a CPU, sees that its grant is old, and leaves.
bool SliceWorld::LeaveBehind(VfId vf) {
  World* world = Find(vf);
  if (world == nullptr || !on_cpu_) return false;
  const auto timeout = static_cast<uint64_t>(preempt_timeout_.count());
  uint64_t starving = 0;
  bool others = false;
  ForEachBit(world->live, [&](uint32_t slot) {
    if (!MustLeave(*world, slot)) return;
    const bool starves = JudgeLeaving(FiguresOf(*world, world->executors[slot]), timeout) == Leaving::kStarves;
    if (starves) starving |= uint64_t{1} << slot;
    others |= !starves;
  });
  if (starving == 0 || others) return false;
  ForEachBit(starving, [&](uint32_t slot) {
    world->executors[slot].behind = true;
    world->executors[slot].behind_seen_ns = MonotonicNs();
  });
  ++world->late.left_behind;
  return Complete(WsState::kDrain, vf);
}

void SliceWorld::LookBehind(World& world) {
  ForEachBit(world.live, [&](uint32_t slot) {
    Executor& executor = world.executors[slot];
    if (!executor.behind || executor.killed) return;
    if (!IsRunning(world, slot)) executor.behind = false;
    const uint64_t now = MonotonicNs();
    if (!executor.behind || now - executor.behind_seen_ns < kLookBehindEveryNs) return;
    executor.behind_seen_ns = now;
    // It has a CPU again, and does not leave.
    const uint64_t most = static_cast<uint64_t>(preempt_timeout_.count()) / 2 + kStolenNs;
    if (executor.clock.SinceMark().cpu_ns >= most) Kill(world, slot, false);
  });
}

// Only the hung ones are killed; where none is, the excuses have lasted too long and all that are on the GPU are.
void SliceWorld::Flr(VfId vf) {
  World* world = Find(vf);
  if (world == nullptr) return;
  world->grant_page().grant.store(world->epoch, std::memory_order_seq_cst);
  const bool nobody_hangs = Excused(vf);
  ForEachBit(world->live, [&](uint32_t slot) {
    const bool stays = IsRunning(*world, slot) && !IsOff(world->executors[slot]);
    if (nobody_hangs ? stays : IsHung(*world, slot)) Kill(*world, slot, nobody_hangs);
  });
}

void SliceWorld::Kill(World& world, uint32_t slot, bool out_of_time) {
  Executor& executor = world.executors[slot];
  if (executor.killed) return;
  const ExecutorClock::Times since = executor.marked ? executor.clock.SinceMark() : ExecutorClock::Times{};
  // As long as somebody has its control files, what it has on the GPU stays.
  AddCounts(world.channels, executor);
  executor.channels.reset();
  ::syscall(SYS_pidfd_send_signal, executor.pidfd.get(), SIGKILL, nullptr, 0);
  executor.killed = true;
  events_.on_killed(world.view.vf, world.name,
                    {executor.pid, Ns{static_cast<int64_t>(MonotonicNs() - drain_started_ns_)},
                     Ns{static_cast<int64_t>(since.cpu_ns)}, Ns{static_cast<int64_t>(since.waited_ns)},
                     since.known && !since.ready, out_of_time});
}

void SliceWorld::CountLate(World& world) {
  ++world.late.turns;
  world.late.stolen_ns += vf_cpu_ns_ ? stolen_.MostSinceMark() : 0;
  ExecutorClock::Times last;
  ForEachBit(last_running_ & world.live, [&](uint32_t slot) {
    const Executor& executor = world.executors[slot];
    if (!executor.marked) return;
    const ExecutorClock::Times since = executor.clock.SinceMark();
    if (since.elapsed_ns >= last.elapsed_ns) last = since;
  });
  world.late.cpu_wait_ns += last.waited_ns;
  world.late.computed_ns += last.cpu_ns;
  world.late.slept_ns += last.elapsed_ns - std::min(last.elapsed_ns, last.waited_ns + last.cpu_ns);
  world.late.minor_faults += last.minor_faults;
  world.late.major_faults += last.major_faults;
}

}  // namespace vgpud::daemon
