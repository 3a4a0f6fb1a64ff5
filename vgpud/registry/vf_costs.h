// SPDX-License-Identifier: Apache-2.0
// What a VF costs the host and has of the GPU, and what a host has of it, resource by resource (tenants/resources.h).
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "vgpud/config/config.h"
#include "vgpud/model/vf_spec.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {

// Of one GPU.
struct CostsOfGpu {
  bool vram_is_ram = true;  // VRAM of its VFs is memory of the host
  uint32_t threads = 1;     // of an executor that run a kernel together
};
Amounts CostsOf(const VfSpec& spec, const CostsOfGpu& gpu);
// What a host with these GPUs and so much memory can give.
Host HostOf(const std::vector<GpuConfig>& gpus, uint64_t ram_bytes);

}  // namespace vgpud::daemon
