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
  World* world = Find(vf);
  if (world == nullptr || slot >= kMaxExecutors) return;
  Executor& executor = world->executors[slot];
  if (executor.generation == generation && executor.pidfd && !executor.killed) executor.channels = std::move(channels);
}

void SliceWorld::AddCounts(VfStats::Channels& to, const Executor& executor) {
  if (executor.channels == nullptr) return;
  const ChannelWorker::Counts counts = executor.channels->counts();
  to.offs += counts.offs;
  to.newcomers += counts.newcomers;
  to.refusals += counts.refusals;
}

VfStats::Channels SliceWorld::ChannelsOf(VfId vf) const {
  const World* world = Find(vf);
  if (world == nullptr) return {};
  VfStats::Channels channels = world->channels;
  ForEachBit(world->live, [&](uint32_t slot) { AddCounts(channels, world->executors[slot]); });
  return channels;
}

void SliceWorld::SwitchOff(World& world, uint32_t slot) {
  Executor& executor = world.executors[slot];
  const uint64_t bit = uint64_t{1} << slot;
  if (executor.channels == nullptr || executor.killed) return;
  if ((switched_ & bit) == 0) {
    if (!IsRunning(world, slot) || MonotonicNs() - drain_started_ns_ < kLeaveByItselfNs) return;
    switched_ |= bit;
    executor.channels->Want(true);
    return;
  }
  if (executor.channels->state() == rm::ChannelTurn::State::kLied) return Kill(world, slot, false);
}

}  // namespace vgpud::daemon
