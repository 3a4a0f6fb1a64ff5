// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/vf_status.h"

#include <algorithm>

#include "base/slice_memory.h"

namespace vgpud::vfio {
namespace {

// Nobody has the GPU since vgpud has gone, whatever it has said before.
uint32_t GpuPercent(const VfFigures& figures) {
  const bool gone = figures.grants != nullptr && figures.grants->vgpud_gone_ns.load() > figures.told_ns;
  return gone ? 0 : figures.gpu_percent;
}

}  // namespace

vgpu_status StatusOf(const VfFigures& figures, const ChannelTable& channels, TimePoint now) {
  vgpu_status status{};
  status.bytes = sizeof status;
  status.vf_state = figures.vf_state;
  status.now_ns = static_cast<uint64_t>(now.time_since_epoch().count());
  status.vram_bytes = figures.vram_bytes;
  status.vram_used_bytes = channels.vram().used();
  status.gpu_percent = GpuPercent(figures);
  status.capability = figures.capability;
  status.cuda_version = figures.cuda_version;
  status.slice_us = figures.slice_us;
  status.weight = figures.weight;
  std::copy(figures.uuid.begin(), figures.uuid.end(), status.uuid);
  figures.name.copy(status.name, sizeof status.name - 1);
  figures.gpu_name.copy(status.gpu_name, sizeof status.gpu_name - 1);
  size_t shown = 0;
  for (const vf_link::Channel& channel : channels.Describe()) {
    const ExecClock& clock = channels.slots().clocks[channel.channel];
    status.channel[shown++] = {
        .id = channel.generation,
        .pid = channel.client_pid,
        .flags = clock.has_context.load(std::memory_order_relaxed) != 0 ? VGPU_STATUS_CONTEXT : 0,
        .vram_bytes = channels.vram().held(channel.channel),
        .gpu_ns = TimeOnGpu(clock, status.now_ns)};
  }
  return status;
}

}  // namespace vgpud::vfio
