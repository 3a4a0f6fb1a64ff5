// SPDX-License-Identifier: Apache-2.0
// What addresses mean: device allocations, pinned host memory, or the program's own memory.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Pinned host memory that contains [address, address + bytes); id 0 if there is none.
struct PinnedSpan {
  Device* device = nullptr;
  uint32_t buffer = 0;
  uint64_t offset = 0;
};
PinnedSpan FindPinned(const void* address, uint64_t bytes);

// Allocates and notes device memory.
CUresult AllocDevice(const Current& current, CUdeviceptr* out, size_t bytes);

// A program frees what a graph allocated: an error when it has done so already. The device's mutex is held.
CUresult EndGraphAllocation(Device::Allocation& allocation);

// Is [address, address + bytes) inside one live allocation or module variable of the device?
bool IsDeviceRange(Device* device, CUdeviceptr address, uint64_t bytes);

// A module variable became known (or, with its module, unknown).
void NoteGlobal(Device* device, CUdeviceptr address, uint64_t bytes);
void ForgetGlobal(Device* device, CUdeviceptr address);

// Frees what `context` (nullptr: anybody) still owns on the device, in the executor too.
void FreeAllOf(Device* device, Context* context);

}  // namespace vgpud::cuda
