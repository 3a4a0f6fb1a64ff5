// SPDX-License-Identifier: Apache-2.0
// Durations counted in fixed buckets, four to each power of two from 256 ns to 4 s. Counters only grow, so that two
// snapshots give the distribution of the time between them. A percentile is at most a quarter too high, never too low.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace vgpud {

class LatencyHistogram {
 public:
  static constexpr size_t kBuckets = 97;

  void Add(uint64_t ns) {
    ++buckets_[Bucket(ns)];
    ++count_;
    sum_ns_ += ns;
    max_ns_ = std::max(max_ns_, ns);
  }
  // Adds all that `other` has counted.
  void Merge(const LatencyHistogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ns_ += other.sum_ns_;
    max_ns_ = std::max(max_ns_, other.max_ns_);
  }
  // As it was when its figures were taken down; their number of durations is the sum of `buckets`.
  static LatencyHistogram From(const std::array<uint64_t, kBuckets>& buckets, uint64_t sum_ns, uint64_t max_ns) {
    LatencyHistogram histogram;
    histogram.buckets_ = buckets;
    for (const uint64_t count : buckets) histogram.count_ += count;
    histogram.sum_ns_ = sum_ns;
    histogram.max_ns_ = max_ns;
    return histogram;
  }
  // What `percent` (0..100) of all durations did not exceed; 0 when there are none.
  uint64_t Percentile(double percent) const {
    uint64_t below = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      below += buckets_[i];
      if (below != 0 && static_cast<double>(below) * 100 >= static_cast<double>(count_) * percent)
        return i + 1 < kBuckets ? std::min(max_ns_, UpperNs(i)) : max_ns_;
    }
    return 0;
  }
  // Durations in bucket `i` are below this; those in the last one may be longer.
  static constexpr uint64_t UpperNs(size_t i) {
    if (i == 0) return uint64_t{1} << kFirstBit;
    return (5 + (i - 1) % 4) << (kFirstBit + (i - 1) / 4 - 2);
  }
  // Where a duration of `ns` is counted.
  static constexpr size_t Bucket(uint64_t ns) {
    if (ns >> kFirstBit == 0) return 0;
    const auto bit = static_cast<unsigned>(std::bit_width(ns)) - 1;
    return std::min(kBuckets - 1, 1 + size_t{bit - kFirstBit} * 4 + ((ns >> (bit - 2)) & 3));
  }
  const std::array<uint64_t, kBuckets>& buckets() const { return buckets_; }
  uint64_t count() const { return count_; }
  uint64_t sum_ns() const { return sum_ns_; }
  uint64_t max_ns() const { return max_ns_; }

 private:
  static constexpr unsigned kFirstBit = 8;

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace vgpud
