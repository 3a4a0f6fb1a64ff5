// SPDX-License-Identifier: Apache-2.0
// A set of small numbers that finds its next member from any place on, in time per 64 numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vgpud {

class ReadySet {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // True if `in` changed the set.
  bool Set(uint32_t id, bool in) {
    if (id / 64 >= words_.size()) words_.resize(id / 64 + 1);
    uint64_t& word = words_[id / 64];
    const uint64_t bit = uint64_t{1} << (id % 64);
    if (((word & bit) != 0) == in) return false;
    word ^= bit;
    count_ += in ? 1 : -1;
    return true;
  }
  bool Has(uint32_t id) const { return id / 64 < words_.size() && ((words_[id / 64] >> (id % 64)) & 1) != 0; }
  // The least member >= `id`, or kNone.
  uint32_t From(uint32_t id) const {
    size_t w = id / 64;
    if (w >= words_.size()) return kNone;
    uint64_t word = words_[w] & (~uint64_t{0} << (id % 64));
    while (word == 0) {
      if (++w == words_.size()) return kNone;
      word = words_[w];
    }
    return static_cast<uint32_t>(w * 64) + static_cast<uint32_t>(std::countr_zero(word));
  }
  uint32_t count() const { return static_cast<uint32_t>(count_); }

 private:
  std::vector<uint64_t> words_;
  int64_t count_ = 0;
};

}  // namespace vgpud
