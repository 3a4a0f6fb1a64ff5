// SPDX-License-Identifier: Apache-2.0
// Memory that the host and kernels reach at any time: buffers of a device's channel. They are mapped here where kernels
// have them, and small pieces share one; or they are pages that the program has already, at an address of its own. Any
// thread.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// May memory be mapped wherever kernels have it? Not beside ThreadSanitizer.
bool AddressesAreFree();

// Zeroed, from a multiple of 4096 on, or of 512 when it is smaller than that. CUDA_ERROR_OUT_OF_MEMORY;
// CUDA_ERROR_NOT_SUPPORTED: this device has none, or something of the program's lies where it would have to be.
CUresult AllocShared(Device* device, uint64_t bytes, uint64_t* address);
// A buffer of its own that lies here at another address, `out->address`, than `there`, where kernels have it; it is
// FreeShared(there) that frees it. For who has an address already, and where that of kernels is no address for
// programs.
CUresult AllocApart(Device* device, uint64_t bytes, Transport::Buffer* out, CUdeviceptr* there);
// Nothing uses it any more. Nothing happens when it is none.
void FreeShared(Device* device, uint64_t address);

// The pages of [address, address + bytes), which stay the program's own and are pinned in its guest's RAM. `there`:
// where kernels have it from now on. CUDA_ERROR_INVALID_VALUE: not all of it may be written to, or it can't be pinned;
// CUDA_ERROR_NOT_SUPPORTED: no pages can be pinned here; CUDA_ERROR_OUT_OF_MEMORY: no more can.
CUresult PinShared(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* there);
// Kernels do not use it any more. Nothing happens when `there` is of other memory.
void UnpinShared(Device* device, CUdeviceptr there);

// Where [address, address + bytes) lies, as kernels have it; buffer 0 if it is not in one piece.
struct SharedSpan {
  Device* device = nullptr;
  uint32_t buffer = 0;
  uint64_t offset = 0;
};
SharedSpan FindShared(uint64_t address, uint64_t bytes);

}  // namespace vgpud::cuda
