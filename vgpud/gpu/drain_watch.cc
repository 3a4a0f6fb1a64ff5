// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/drain_watch.h"

#include <algorithm>

#include "vgpud/gpu/slot_bits.h"

namespace vgpud::daemon {

void DrainWatch::Begin(uint64_t now_ns) {
  started_ns_ = now_ns;
  under_way_ = false;
  switched_ = given_more_ = 0;
}

void DrainWatch::See(VfWorld& world) {
  vf_cpu_ns_.reset();
  last_running_ = 0;
  ForEachBit(world.live, [&](uint32_t slot) {
    world.executors[slot].marked = false;
    if (world.IsRunning(slot)) last_running_ |= uint64_t{1} << slot;
  });
  under_way_ = last_running_ != 0;
}

void DrainWatch::Mark(VfWorld& world, VfWorld::Executor& executor) {
  if (std::exchange(executor.marked, true)) return;
  if (!vf_cpu_ns_) {
    vf_cpu_ns_ = world.CpuNs();
    stolen_.Mark();
  }
  executor.clock.Mark();
}

uint64_t DrainWatch::OwnCpuNs(const VfWorld& world) const {
  const uint64_t now = world.CpuNs();
  return vf_cpu_ns_ ? now - std::min(now, *vf_cpu_ns_) : 0;
}

LeaveFigures DrainWatch::FiguresOf(VfWorld& world, VfWorld::Executor& executor) {
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

Ns DrainWatch::WaitedForCpu(const VfWorld& world) const {
  uint64_t waited = ~uint64_t{0};
  ForEachBit(last_running_ & world.live, [&](uint32_t slot) {
    const VfWorld::Executor& executor = world.executors[slot];
    waited = std::min(waited, executor.marked ? executor.clock.SinceMark().waited_ns : 0);
  });
  if (waited == ~uint64_t{0} || !vf_cpu_ns_) return Ns{0};
  // The CPU could have been the waiting thread's.
  const uint64_t own = OwnCpuNs(world);
  return Ns{static_cast<int64_t>(waited - std::min(waited, own))};
}

void DrainWatch::CountLate(VfWorld& world) const {
  ++world.late.turns;
  world.late.stolen_ns += vf_cpu_ns_ ? stolen_.MostSinceMark() : 0;
  ExecutorClock::Times last;
  ForEachBit(last_running_ & world.live, [&](uint32_t slot) {
    const VfWorld::Executor& executor = world.executors[slot];
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
