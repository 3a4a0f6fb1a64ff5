// SPDX-License-Identifier: Apache-2.0
// The heap that kernels allocate from (malloc and free on the device).
#pragma once

#include <cstdint>

#include "gpu/gpu.h"

namespace vgpud {

class KernelHeap {
 public:
  virtual ~KernelHeap() = default;
  // False: the heap exists, and its size is fixed.
  virtual bool SetHeapBytes(uint64_t bytes) = 0;
  // Bytes of VRAM that SetHeapBytes(bytes) takes beyond what the heap has now; 0: MakeHeap takes them.
  virtual uint64_t HeapBytesAtOnce(uint64_t bytes) const = 0;
  // Bytes of VRAM that MakeHeap takes; 0: the heap exists.
  virtual uint64_t HeapBytesToMake() const = 0;
  // Before the first launch of a function with uses_heap. kOutOfMemory.
  virtual GpuResult<void> MakeHeap() = 0;
};

}  // namespace vgpud
