// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as this backend uses it. driver_calls.h has its calls.
#pragma once

#include <string>

#include "base/result.h"
#include "gpu/cuda/driver_calls.h"

namespace vgpud::driver {

// Every call of the table that the backend makes is set when LoadApi has succeeded.
struct Api : Calls {
  // nullptr before CUDA 12.8.
  Status (*TensorMapEncodeIm2colWide)(void* map, int32_t type, uint32_t rank, void* address, const uint64_t* size,
                                      const uint64_t* stride, int32_t lower, int32_t upper, uint32_t channels,
                                      uint32_t pixels, const uint32_t* element_stride, int32_t interleave, int32_t mode,
                                      int32_t swizzle, int32_t promotion, int32_t fill);
  // The card's, where DeviceGetUuid is that of a MIG instance of it (cuDeviceGetUuid before CUDA 11.4). nullptr: the
  // driver has it no more.
  Status (*DeviceGetCardUuid)(DeviceUuid* uuid, Device device);
  // Of our own libcuda, nested (docs/cuda-backend.md): what file memory shows that MemHostRegister will be asked for.
  // nullptr: it is another driver.
  Status (*DescribeHostMemory)(void* memory, size_t bytes, int fd, uint64_t offset);

  // "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected".
  std::string Describe(Status status) const;
};

// The oldest driver that has them all, as cuDriverGetVersion counts: 12.4.
inline constexpr int kOldestDriver = 12040;

// Loads `library` (a path, or a name that the loader finds; empty: libcuda.so.1) and every row. Process-wide and for
// good: a driver has threads. Call it before the jail, which opens no files. An error says what is missing and what to
// install.
[[nodiscard]] Result<Api> LoadApi(const std::string& library);

}  // namespace vgpud::driver
