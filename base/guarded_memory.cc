// SPDX-License-Identifier: Apache-2.0
#include "base/guarded_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

namespace vgpud {

Result<GuardedMemory> GuardedMemory::Make(size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (bytes == 0 || bytes > SIZE_MAX / 2) return Fail(std::errc::invalid_argument, "guarded memory of no size");
  GuardedMemory memory;
  const size_t size = Rounded(bytes);
  void* const all = ::mmap(nullptr, size + 2 * kGuardBytes, PROT_NONE, kFlags, -1, 0);
  if (all == MAP_FAILED) return FailErrno(fmt::format("address space for {} bytes between guards", bytes));
  memory.reserved_ = static_cast<std::byte*>(all);
  memory.bytes_ = size;
  if (::mmap(memory.data(), size, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED, -1, 0) == MAP_FAILED)
    return FailErrno(fmt::format("mmap of {} guarded bytes", bytes));
  return memory;
}

GuardedMemory::~GuardedMemory() {
  if (reserved_ != nullptr) ::munmap(reserved_, bytes_ + 2 * kGuardBytes);
}

}  // namespace vgpud
