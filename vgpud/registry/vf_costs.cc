// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_costs.h"

#include <algorithm>

#include "base/jail/rules.h"
#include "base/log.h"
#include "base/slice_page.h"
#include "sched/knobs.h"
#include "vgpud/host/child_log.h"
#include "vgpud/host/vf_cgroup.h"
#include "vgpud/state/state_files.h"

namespace vgpud::daemon {
namespace {

constexpr uint32_t kMostWeightOfDoorVf = 1000;

}  // namespace

Amounts CostsOf(const VfSpec& spec, const CostsOfGpu& gpu) {
  // Here is everything that a VF can be given. Whoever adds to it says here what that costs.
  [[maybe_unused]] const auto& [name, profile, view, vram_bytes, host_memory_bytes, transient, gpu_name, placement,
                                numa_node, domain, tenant, user, owner] = spec;
  [[maybe_unused]] const auto& [id, weight, slice, runnable, paused, priority, group, guarantee, limit, burst,
                                wake_first] = view;
  Amounts amounts = KnobAmounts(view);
  amounts[Resource::kVfs] = 1;
  amounts[Resource::kVram] = vram_bytes;
  amounts[Resource::kHostMemory] = host_memory_bytes;
  amounts[Resource::kRam] = host_memory_bytes + (gpu.vram_is_ram ? vram_bytes : 0);
  amounts[Resource::kThreads] = VfCgroup::LimitsFor(vram_bytes, host_memory_bytes, gpu.threads).pids;
  amounts[Resource::kChannels] = kMaxExecutors;
  // Twice as many executors as channels: while the first half exits, the second begins.
  amounts[Resource::kDescriptors] = kMostServerFiles + 2 * kMaxExecutors * kMostExecutorFiles;
  // One that ends with its domain is kept until then (vf_store.h).
  amounts[Resource::kDisk] = transient && !domain.ends_vf ? 0 : StateFiles::kMostBytes;
  amounts[Resource::kLog] = uint64_t{ChildLog::kLinesPerSecond} * kMaxLogText;
  return amounts;
}

Host HostOf(const std::vector<GpuConfig>& gpus, uint64_t ram_bytes) {
  Host host;
  VfSpec usual;
  usual.view.weight = static_cast<uint32_t>(RowOf(Knob::kWeight).max);
  Amounts dearest;
  Ns longest_slice{0};
  for (const GpuConfig& gpu : gpus) {
    const bool is_ram = !gpu.gpu.is_cuda();
    // What VFs are promised beyond a card's memory lies in that of the host.
    const bool beyond = gpu.gpu_vram_bytes == 0 || gpu.gpu.cuda_oversubscribe;
    host.all[Resource::kVram] += gpu.gpu_vram_bytes + (beyond ? ram_bytes : 0);
    host.all[Resource::kGuarantee] += kWhole;
    const Amounts costs = CostsOf(usual, {.vram_is_ram = is_ram, .threads = gpu.soft_gpu_threads});
    for (const ResourceRow& row : kResourceRows)
      dearest[row.resource] = std::max(dearest[row.resource], costs[row.resource]);
    longest_slice = std::max(longest_slice, gpu.settings.options.base_slice);
  }
  for (const Resource resource : {Resource::kVfs, Resource::kWeight, Resource::kThreads, Resource::kChannels,
                                  Resource::kDescriptors, Resource::kDisk, Resource::kLog})
    host.all[resource] = RowOf(Resource::kVfs).most * dearest[resource];
  host.all[Resource::kRam] = host.all[Resource::kHostMemory] = ram_bytes;
  // As much as a weight gives that a job can ask for, and nothing that goes before the others.
  VfView most;
  most.weight = kMostWeightOfDoorVf;
  most.slice = longest_slice * kMostWeightOfDoorVf / kDefaultWeight;
  host.door_vf = KnobAmounts(most);
  return host;
}

}  // namespace vgpud::daemon
