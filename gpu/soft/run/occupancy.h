// SPDX-License-Identifier: Apache-2.0
// How many blocks can be resident at once, by the attributes that the device reports: what the CUDA driver tells a
// program (cuOccupancyMaxActiveBlocksPerMultiprocessor) and what a cooperative launch may ask for.
#pragma once

#include <cstdint>

#include "base/compute_capability.h"
#include "gpu/gpu.h"

namespace vgpud::soft {

// Blocks of the whole device.
uint64_t MostResident(const ComputeCapability& capability, const FunctionInfo& function, uint32_t threads,
                      uint32_t dynamic_shared);

}  // namespace vgpud::soft
