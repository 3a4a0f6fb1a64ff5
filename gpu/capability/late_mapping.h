// SPDX-License-Identifier: Apache-2.0
// Memory that is made first and mapped to addresses later (cuMemCreate, cuMemMap). All sizes, offsets and addresses are
// multiples of kMappingGrain.
#pragma once

#include <cstdint>

#include "gpu/gpu.h"

namespace vgpud {

class LateMapping {
 public:
  virtual ~LateMapping() = default;
  static constexpr uint64_t kMappingGrain = uint64_t{2} << 20;
  // Makes memory without an address, zeroed or as a driver gives it, and returns its number. kInvalidValue,
  // kOutOfMemory, kNotSupported.
  virtual GpuResult<uint64_t> CreateMappable(uint64_t bytes) = 0;
  // Returns the bytes given back. kInvalidHandle; kInvalidValue: a part of it is mapped.
  virtual GpuResult<uint64_t> ReleaseMappable(uint64_t memory) = 0;
  // Maps `bytes` of it, from `offset` on, to an address in [VGPU_MAPPED_VA, + VGPU_MAPPED_BYTES). Not while a grid
  // runs. kInvalidHandle, kInvalidValue, kOutOfMemory; kNotSupported: that part has an address.
  virtual GpuResult<void> MapMemory(uint64_t memory, uint64_t offset, GpuVa to, uint64_t bytes) = 0;
  // Unmaps what whole calls of MapMemory have mapped there. The memory keeps its bytes for the next mapping. Not while
  // a grid runs. kInvalidValue.
  virtual GpuResult<void> UnmapMemory(GpuVa at, uint64_t bytes) = 0;
};

}  // namespace vgpud
