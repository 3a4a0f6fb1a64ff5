// SPDX-License-Identifier: Apache-2.0
// Memory for what must be there when the program's heap is not: whole pages, nobody else's.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "guest-driver-shim/libcuda/channel/api_call.h"

namespace vgpud::cuda {

// An allocator for standard containers that allocate seldom. It maps pages, so a container does not use the program's
// heap.
template <class T>
struct OwnPages {
  using value_type = T;
  OwnPages() = default;
  template <class U>
  explicit OwnPages(const OwnPages<U>&) {}
  T* allocate(size_t count) {
    void* const at = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw NoMemory();
    return static_cast<T*>(at);
  }
  void deallocate(T* at, size_t count) { munmap(at, count * sizeof(T)); }
  bool operator==(const OwnPages&) const { return true; }
};

}  // namespace vgpud::cuda
