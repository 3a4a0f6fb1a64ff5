// SPDX-License-Identifier: Apache-2.0
// Memory of this library. It is the program's malloc, but what is thrown when there is none is our own (NoMemory):
// every call answers it with CUDA_ERROR_OUT_OF_MEMORY (Enter).
#include <cstdlib>
#include <new>

#include "guest-driver-shim/libcuda/channel/api_call.h"

namespace {

void* Known(void* block) {
  if (block == nullptr) throw vgpud::cuda::NoMemory();
  return block;
}

}  // namespace

void* operator new(size_t bytes) { return Known(malloc(bytes != 0 ? bytes : 1)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  return Known(aligned_alloc(to, (bytes + to - 1) / to * to));
}
void operator delete(void* block) noexcept { free(block); }
void operator delete(void* block, size_t) noexcept { free(block); }
void operator delete(void* block, std::align_val_t) noexcept { free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { free(block); }
