// SPDX-License-Identifier: Apache-2.0
// A 64-bit checksum of a stream of words: against damage, not against malice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace vgpud::soft {

class Checksum {
 public:
  void Add(uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 29;
  }
  // The last word is filled up with zeros.
  void Add(std::span<const std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
      Add(word);
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0x766770756473746b;
};

}  // namespace vgpud::soft
