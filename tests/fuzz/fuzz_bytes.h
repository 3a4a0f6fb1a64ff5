// SPDX-License-Identifier: Apache-2.0
// The bytes of a fuzz input as choices, first byte first. When they are used up every choice is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

namespace vgpud {

class FuzzBytes {
 public:
  FuzzBytes(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  size_t left() const { return left_; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  // Below `n`, which is not 0.
  uint32_t Pick(uint32_t n) { return n <= 256 ? Byte() % n : (Byte() | uint32_t{Byte()} << 8) % n; }
  bool Chance(uint32_t of) { return Pick(of) == of - 1; }
  template <class T>
  T Raw() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{Byte()} << (8 * i);
    return static_cast<T>(value);
  }
  template <class T, size_t kCount>
  const T& Of(const T (&list)[kCount]) {
    return list[Pick(kCount)];
  }
  std::span<const uint8_t> Take(size_t bytes) {
    const size_t n = bytes < left_ ? bytes : left_;
    const std::span<const uint8_t> taken(data_, n);
    data_ += n;
    left_ -= n;
    return taken;
  }
  // Small ones, limits, what lies next to limits, and any.
  uint64_t Number() {
    static constexpr uint64_t kNumbers[] = {
        0,          1,          2,          3,        4,          7,          8,          15,        16,
        31,         32,         33,         63,       64,         255,        256,        1023,      1024,
        1025,       4095,       4096,       32764,    32765,      49152,      65535,      65536,     0x100000,
        0x7fffffff, 0x80000000, 0xffffffff, 1u << 24, 1ull << 32, 1ull << 40, 1ull << 63, ~0ull - 7, ~0ull};
    const uint32_t n = Pick(static_cast<uint32_t>(std::size(kNumbers)) + 4);
    return n < std::size(kNumbers) ? kNumbers[n] : n == std::size(kNumbers) ? Raw<uint64_t>() : Byte();
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

}  // namespace vgpud
