// SPDX-License-Identifier: Apache-2.0
// What a VF costs the host and has of the GPU, resource by resource (tenants/resources.h). Pure.
#pragma once

#include <cstdint>

#include "vgpud/report.h"
#include "vgpud/tenants/resources.h"

namespace vgpud::daemon {

// Of one GPU.
struct CostsOfGpu {
  bool vram_is_ram = true;  // VRAM of its VFs is memory of the host
  uint32_t threads = 1;     // of an executor that run a kernel together
};
Amounts CostsOf(const VfSpec& spec, const CostsOfGpu& gpu);

}  // namespace vgpud::daemon
