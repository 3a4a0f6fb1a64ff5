// SPDX-License-Identifier: Apache-2.0
// An owned mmap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace vgpud {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
    other.bytes_ = 0;
  }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Maps `bytes` of `fd` from `offset`, shared, readable and, if asked, writable.
  [[nodiscard]] static Result<Mapping> Shared(int fd, uint64_t offset, size_t bytes, bool writable = true);
  // Private anonymous zeroed memory that takes host memory only where it is touched.
  [[nodiscard]] static Result<Mapping> Anonymous(size_t bytes);
  // Address space only (PROT_NONE), to be filled with MapAt.
  [[nodiscard]] static Result<Mapping> Reserve(size_t bytes);
  // The same at an address where nothing is mapped; EEXIST when something is.
  [[nodiscard]] static Result<Mapping> ReserveAt(uint64_t address, size_t bytes);
  // Replaces [at, at + bytes) of this mapping by a shared view of `fd`.
  [[nodiscard]] Result<void> MapAt(size_t at, int fd, uint64_t offset, size_t bytes, bool writable);

  // Lets go of the first `bytes`, which are whole pages and no more than it has.
  void UnmapFront(size_t bytes);

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t size() const { return bytes_; }
  std::span<std::byte> bytes() const { return {data(), bytes_}; }
  explicit operator bool() const { return data_ != nullptr; }
  // Overflow-safe: is [offset, offset + length) inside?
  bool Contains(uint64_t offset, uint64_t length) const { return offset <= bytes_ && length <= bytes_ - offset; }
  template <class T>
  T* At(size_t offset) const {
    return reinterpret_cast<T*>(data() + offset);
  }

 private:
  Mapping(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace vgpud
