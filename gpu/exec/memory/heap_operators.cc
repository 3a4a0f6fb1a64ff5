// SPDX-License-Identifier: Apache-2.0
// new and delete of vgpud-exec. Those for arrays and with nothrow end here too (libstdc++). Part of the program, not of
// a library: tests have the usual ones.
#include <new>

#include "gpu/exec/memory/heap.h"

void* operator new(size_t bytes) { return vgpud::exec::heap::Allocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return vgpud::exec::heap::Allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* block) noexcept { vgpud::exec::heap::Free(block); }
void operator delete(void* block, size_t) noexcept { vgpud::exec::heap::Free(block); }
void operator delete(void* block, std::align_val_t) noexcept { vgpud::exec::heap::Free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { vgpud::exec::heap::Free(block); }
