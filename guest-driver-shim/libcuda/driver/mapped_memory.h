// SPDX-License-Identifier: Apache-2.0
// Device memory that is made first and mapped to reserved addresses later (virtual_memory.cc). Any thread.
#pragma once

#include <optional>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// What one cuMemMap has put somewhere.
struct MappedPiece {
  Device* device = nullptr;
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;         // NewMemoryId: of what is mapped there
  uint64_t memory_id = 0;  // of the memory
};
// The piece that contains `address`; one that nobody may access counts.
std::optional<MappedPiece> FindMapped(CUdeviceptr address);
// Is all of [address, address + bytes) mapped, and may the device access it?
bool IsMappedOn(Device* device, CUdeviceptr address, uint64_t bytes);
// The device has forgotten everything.
void ForgetMappedOf(Device* device);

}  // namespace vgpud::cuda
