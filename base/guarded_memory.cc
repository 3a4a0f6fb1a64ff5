// SPDX-License-Identifier: Apache-2.0
#include "base/guarded_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

namespace vgpud {
namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

Result<std::byte*> ReserveSpace(void* at, size_t bytes, int flags) {
  void* const all = ::mmap(at, bytes, PROT_NONE, kFlags | flags, -1, 0);
  if (all == MAP_FAILED) return FailErrno(fmt::format("address space for {} bytes and guards", bytes));
  return static_cast<std::byte*>(all);
}

bool IsSize(size_t bytes, size_t most) { return bytes != 0 && bytes <= most && most <= SIZE_MAX / 2; }

}  // namespace

Result<GuardedMemory> GuardedMemory::Make(size_t bytes, size_t most) {
  if (!IsSize(bytes, most)) return Fail(std::errc::invalid_argument, "guarded memory of no size");
  GuardedMemory memory;
  memory.bytes_ = Rounded(bytes);
  memory.reserved_ = TRY(ReserveSpace(nullptr, Rounded(most) + 2 * kGuardBytes, 0));
  memory.reserved_bytes_ = Rounded(most) + 2 * kGuardBytes;
  memory.data_ = memory.reserved_ + kGuardBytes;
  TRY(memory.Open());
  return memory;
}

Result<GuardedMemory> GuardedMemory::MakeAt(std::byte* at, size_t bytes, size_t most) {
  if (!IsSize(bytes, most)) return Fail(std::errc::invalid_argument, "guarded memory of no size");
  GuardedMemory memory;
  memory.bytes_ = Rounded(bytes);
  memory.reserved_ = TRY(ReserveSpace(at, Rounded(most) + kGuardBytes, MAP_FIXED_NOREPLACE));
  memory.reserved_bytes_ = Rounded(most) + kGuardBytes;
  memory.data_ = memory.reserved_;
  if (memory.data_ != at) return Fail(std::errc::file_exists, "guarded memory where something is");
  TRY(memory.Open());
  return memory;
}

Result<void> GuardedMemory::Grow(size_t bytes) {
  const size_t size = bytes <= most() ? Rounded(bytes) : 0;
  if (size < bytes_)
    return Fail(std::errc::invalid_argument,
                fmt::format("guarded memory has {} to {} bytes, not {}", bytes_, most(), bytes));
  if (size == bytes_) return {};
  if (::mprotect(data_ + bytes_, size - bytes_, PROT_READ | PROT_WRITE) != 0)
    return FailErrno(fmt::format("mprotect of {} guarded bytes", size - bytes_));
  bytes_ = size;
  return {};
}

Result<void> GuardedMemory::Open() {
  if (::mmap(data_, bytes_, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED, -1, 0) == MAP_FAILED)
    return FailErrno(fmt::format("mmap of {} guarded bytes", bytes_));
  return {};
}

GuardedMemory::~GuardedMemory() {
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
}

}  // namespace vgpud
