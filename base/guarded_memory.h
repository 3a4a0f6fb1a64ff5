// SPDX-License-Identifier: Apache-2.0
// Memory that a guest's addresses point into: a region of its own between inaccessible pages.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace vgpud {

class GuardedMemory {
 public:
  // Address space without memory on either side of a region: more than any 32-bit offset from inside of it reaches.
  static constexpr size_t kGuardBytes = (size_t{4} << 30) + (64 << 10);
  static constexpr size_t kPage = 4096;
  static constexpr size_t Rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  GuardedMemory() = default;
  GuardedMemory(GuardedMemory&& other) noexcept
      : reserved_(std::exchange(other.reserved_, nullptr)),
        reserved_bytes_(std::exchange(other.reserved_bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  GuardedMemory& operator=(GuardedMemory&& other) noexcept {
    std::swap(reserved_, other.reserved_);
    std::swap(reserved_bytes_, other.reserved_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GuardedMemory();

  // Zeroed memory for `bytes`, not 0, that takes host memory only where it is touched. Errors: of mmap.
  [[nodiscard]] static Result<GuardedMemory> Make(size_t bytes) { return Make(bytes, bytes); }
  // The same with its first byte at `at`, a multiple of kPage; only the guard behind it is reserved, the caller knows
  // what is in front of it. EEXIST when something is there.
  [[nodiscard]] static Result<GuardedMemory> MakeAt(std::byte* at, size_t bytes) { return MakeAt(at, bytes, bytes); }
  // The same two with address space for `most` bytes in front of the guard, into which Grow may extend the region.
  [[nodiscard]] static Result<GuardedMemory> Make(size_t bytes, size_t most);
  [[nodiscard]] static Result<GuardedMemory> MakeAt(std::byte* at, size_t bytes, size_t most);
  // Zeroed memory behind the region, which has `bytes` then. Errors: more than was reserved, or less than it has; of
  // mprotect. Then nothing has changed.
  [[nodiscard]] Result<void> Grow(size_t bytes);

  // The first of `bytes` bytes of which the last is the last one before the inaccessible pages; at most those it was
  // made for, rounded up to whole pages.
  std::byte* EndingHere(size_t bytes) const { return data_ + bytes_ - bytes; }
  std::byte* data() const { return data_; }
  // Rounded up to whole pages.
  size_t bytes() const { return bytes_; }
  // What Grow may make of it.
  size_t most() const { return reserved_bytes_ - kGuardBytes - static_cast<size_t>(data_ - reserved_); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  [[nodiscard]] Result<void> Open();

  std::byte* reserved_ = nullptr;
  size_t reserved_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace vgpud
