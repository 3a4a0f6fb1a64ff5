// SPDX-License-Identifier: Apache-2.0
// Registered memory that shows a file of memory (tmpfs, a memfd), as other mappings here, other processes and other
// devices may: the device maps that file, too (VGPU_SOCK_BUFFER_IMPORT), at an address of its own. Any thread.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Where kernels have [address, address + bytes) from now on: what vgpuDescribeHostMemory has told of as it is here,
// else what the kernel says that it shows. Where buffers are mapped at all, it is mapped there here as well.
// CUDA_ERROR_OUT_OF_MEMORY: the device takes no more; CUDA_ERROR_NOT_SUPPORTED: it takes none, or there is no such
// file, or no way to it any more.
CUresult ImportMemory(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out);
// The device lets go of it; nothing uses it any more. Nothing happens when it is none.
void ForgetImported(uint64_t address);

}  // namespace vgpud::cuda

// An export of ours, which no driver of NVIDIA's has: memory that cuMemHostRegister will be asked for shows
// [offset, offset + bytes) of the file, which stays the caller's and open until then. A negative `fd`: it shows none.
extern "C" CUresult vgpuDescribeHostMemory(void* address, size_t bytes, int fd, uint64_t offset);
