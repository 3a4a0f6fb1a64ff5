// SPDX-License-Identifier: Apache-2.0
// Executors that do not leave the GPU by themselves: their channels are switched off (docs/cuda-channels.md, "Turns").
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/slice_world.h"

namespace vgpud::daemon {
namespace {

// So long an executor may take to leave by itself before its channels are switched off: twice what is launched at once
// when it can't be stopped, and more than those need that can. It is overrun, and so the VF's own debt.
constexpr uint64_t kLeaveByItselfNs = 500'000;

}  // namespace

void SliceWorld::SetChannels(VfId vf, uint32_t slot, uint64_t generation,
                             std::unique_ptr<ChannelWorker::Hold> channels) {
  VfWorld* world = Find(vf);
  if (world == nullptr || slot >= kMaxExecutors) return;
  Executor& executor = world->executors[slot];
  if (executor.generation == generation && executor.pidfd && !executor.killed) executor.channels = std::move(channels);
}

void SliceWorld::SwitchOff(VfWorld& world, uint32_t slot) {
  Executor& executor = world.executors[slot];
  if (executor.channels == nullptr || executor.killed) return;
  if (!drain_.is_switched(slot)) {
    if (!world.IsRunning(slot) || MonotonicNs() - drain_.started_ns() < kLeaveByItselfNs) return;
    (void)drain_.SwitchOff(slot);
    executor.channels->Want(true);
    return;
  }
  if (executor.channels->state() == rm::ChannelTurn::State::kLied) return Kill(world, slot, false);
}

}  // namespace vgpud::daemon
