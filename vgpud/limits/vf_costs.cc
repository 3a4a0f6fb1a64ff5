// SPDX-License-Identifier: Apache-2.0
#include "vgpud/limits/vf_costs.h"

#include "base/jail/rules.h"
#include "base/log.h"
#include "base/slice_page.h"
#include "vgpud/host/child_log.h"
#include "vgpud/host/vf_cgroup.h"
#include "vgpud/state/state_files.h"

namespace vgpud::daemon {

Amounts CostsOf(const VfSpec& spec, const CostsOfGpu& gpu) {
  // Here is everything that a VF can be given. Whoever adds to it says here what that costs.
  [[maybe_unused]] const auto& [name, profile, view, vram_bytes, host_memory_bytes, transient, gpu_name, placement,
                                numa_node, domain, tenant] = spec;
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
  amounts[Resource::kDisk] = transient ? 0 : StateFiles::kMostBytes;
  amounts[Resource::kLog] = uint64_t{ChildLog::kLinesPerSecond} * kMaxLogText;
  return amounts;
}

}  // namespace vgpud::daemon
