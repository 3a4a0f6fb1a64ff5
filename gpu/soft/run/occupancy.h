// SPDX-License-Identifier: Apache-2.0
// How many blocks can be resident at once, by the attributes that the device reports: what the CUDA driver tells a
// program (cuOccupancyMaxActiveBlocksPerMultiprocessor) and what a cooperative launch may ask for.
#pragma once

#include <cstdint>

#include "gpu/gpu.h"

namespace vgpud::soft {

inline constexpr uint32_t kThreadsPerMultiprocessor = 1024;
inline constexpr uint32_t kBlocksPerMultiprocessor = 16;
inline constexpr uint32_t kSharedPerMultiprocessor = 64 << 10;
inline constexpr uint32_t kRegistersPerMultiprocessor = 65536;

// Blocks of the whole device.
uint64_t MostResident(const FunctionInfo& function, uint32_t threads, uint32_t dynamic_shared);

}  // namespace vgpud::soft
