// SPDX-License-Identifier: Apache-2.0
// Device memory that is made first and gets addresses later, by the driver's own virtual memory management
// (cuMemCreate, cuMemMap). What the driver documents of it holds for guests: memory is mapped from its begin on. The
// thread that calls the Gpu.
#pragma once

#include <map>

#include "gpu/cuda/card.h"
#include "gpu/cuda/memory/ranges.h"

namespace vgpud::driver {

class Mappable {
 public:
  // Both outlive it.
  Mappable(const Card& card, Ranges& ranges) : card_(card), ranges_(ranges) {}
  // What is left is unmapped and given back.
  ~Mappable();
  Mappable(const Mappable&) = delete;
  Mappable& operator=(const Mappable&) = delete;

  // As LateMapping::CreateMappable, ReleaseMappable, MapMemory and UnmapMemory.
  GpuResult<uint64_t> Create(uint64_t bytes);
  GpuResult<uint64_t> Release(uint64_t number);
  GpuResult<void> Map(uint64_t number, uint64_t offset, GpuVa to, uint64_t bytes);
  GpuResult<void> Unmap(GpuVa at, uint64_t bytes);

 private:
  struct Memory {
    MemoryHandle handle = 0;
    uint64_t bytes = 0;
    bool mapped = false;
  };
  struct Piece {
    uint64_t bytes = 0;
    uint64_t memory = 0;
  };
  const Card& card_;
  Ranges& ranges_;
  std::map<uint64_t, Memory> memories_;  // by number
  std::map<uint64_t, Piece> pieces_;     // by address
  uint64_t next_ = 1;
};

}  // namespace vgpud::driver
