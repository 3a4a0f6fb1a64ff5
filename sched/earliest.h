// SPDX-License-Identifier: Apache-2.0
// Small numbers with a moment each, and which of them has the earliest; of equal ones the least number.
//
// A tournament: a binary tree in an array, numbers at the leaves, in each node the winner of its two children. A change
// costs one pass from leaf to root without a branch that depends on the moments.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sched/types.h"

namespace vgpud {

class Earliest {
 public:
  // Numbers below `count` may be used. Only this allocates.
  void Grow(uint32_t count) {
    if (count <= leaves_) return;
    std::vector<int64_t> before(std::bit_ceil(count), kNever);
    before.swap(at_);
    leaves_ = static_cast<uint32_t>(at_.size());
    winners_.resize(2 * at_.size());
    for (uint32_t i = 0; i < leaves_; ++i) winners_[leaves_ + i] = i;
    for (uint32_t i = leaves_ - 1; i > 0; --i) winners_[i] = winners_[2 * i];
    for (uint32_t i = 0; i < before.size(); ++i) Replay(i, before[i]);
  }
  // `id` has the moment `at`, and no earlier setting. 146 years from zero on, all moments are equal.
  void Set(uint32_t id, TimePoint at) { Replay(id, std::clamp(at.time_since_epoch().count(), 1 - kNever, kNever - 1)); }
  void Remove(uint32_t id) {
    if (Has(id)) Replay(id, kNever);
  }
  bool Has(uint32_t id) const { return at_[id] != kNever; }
  bool empty() const { return at_[first()] == kNever; }
  // Only if not empty.
  uint32_t first() const { return winners_[1]; }

 private:
  static constexpr int64_t kNever = (int64_t{1} << 62) - 1;  // so that two differ by 63 bits at most

  void Replay(uint32_t winner, int64_t at) {
    int64_t* const all = at_.data();
    uint32_t* const winners = winners_.data();
    all[winner] = at;
    for (uint32_t i = leaves_ + winner; i > 1; i /= 2) {
      const uint32_t other = winners[i ^ 1];
      // The left one, with the even place and the lesser numbers, wins a draw.
      const int64_t later = all[other] - at;
      const int64_t beaten = (later - (i & 1)) >> 63;  // all bits or none
      at += later & beaten;
      winner ^= (winner ^ other) & static_cast<uint32_t>(beaten);
      winners[i / 2] = winner;
    }
  }

  std::vector<int64_t> at_{kNever};      // by number
  std::vector<uint32_t> winners_{0, 0};  // [0] unused, [1] the root, then level by level
  uint32_t leaves_ = 1;                  // a power of two
};

}  // namespace vgpud
