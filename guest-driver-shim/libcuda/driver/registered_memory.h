// SPDX-License-Identifier: Apache-2.0
// Memory of the program's own that kernels reach: a buffer takes the place of its pages, with the same bytes at the
// same address, and kernels have that buffer at an address of their own. Memory in pages that have a buffer already
// shares it. Forked children have a copy, as of other memory, and what the program has said of its memory (mlock,
// madvise, protection keys) goes on to hold. Any thread. Only where pages can't be pinned (PinShared).
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Where kernels have [address, address + bytes) from now on. CUDA_ERROR_OUT_OF_MEMORY: it can't be pinned;
// CUDA_ERROR_NOT_SUPPORTED: this device reaches no memory of the host; CUDA_ERROR_INVALID_VALUE: the memory is not the
// program's alone (page_swap.h), not everywhere of the same treatment (mappings.h), or some of its pages, but not all,
// have a buffer already.
CUresult ShareRegistered(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out);
// It is the program's own again; nothing uses it any more. Nothing happens when it is none. CUDA_ERROR_OUT_OF_MEMORY:
// that can't be done now, and nothing has changed.
CUresult UnshareRegistered(uint64_t address);

}  // namespace vgpud::cuda
