// SPDX-License-Identifier: Apache-2.0
// Memory that the host and kernels reach at one address, at any time: buffers of a device's channel, mapped here where
// its kernels have them. Small pieces share a buffer. Any thread.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Zeroed, from a multiple of 4096 on, or of 512 when it is smaller than that. CUDA_ERROR_OUT_OF_MEMORY;
// CUDA_ERROR_NOT_SUPPORTED: this device has none, or something of the program's lies where it would have to be.
CUresult AllocShared(Device* device, uint64_t bytes, uint64_t* address);
// The same, as a buffer of its own, which FreeShared(address) frees. `bytes`: a multiple of 4096.
CUresult AllocSharedBuffer(Device* device, uint64_t bytes, Transport::Buffer* out);
// Nothing uses it any more. Nothing happens when it is none.
void FreeShared(Device* device, uint64_t address);

// Where [address, address + bytes) lies; buffer 0 if it is not in one piece.
struct SharedSpan {
  Device* device = nullptr;
  uint32_t buffer = 0;
  uint64_t offset = 0;
};
SharedSpan FindShared(uint64_t address, uint64_t bytes);

}  // namespace vgpud::cuda
