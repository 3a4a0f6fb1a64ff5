// SPDX-License-Identifier: Apache-2.0
// How late timed waits return on this host, and how much earlier than a deadline one has to end so that the deadline is
// seldom missed. Pure: no clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"
#include "sched/latency_histogram.h"

namespace vgpud::daemon {

class WakeUps {
 public:
  // What is assumed as long as nothing is known.
  static constexpr Ns kAtFirst{50'000};

  // A wait returned `late` after the moment that was asked for.
  void Add(Ns late) {
    const uint64_t ns = static_cast<uint64_t>(std::max(Ns{0}, late).count());
    all_.Add(ns);
    ++recent_[LatencyHistogram::Bucket(ns)];
    if (++recent_count_ < kWindow) return;
    recent_count_ = 0;
    for (uint32_t& count : recent_) recent_count_ += count /= 2;
  }
  // Of the last waits (those of long ago count less and less) `percent` in 100 were no later than this. Where that is
  // more than `most`: as much of `most` as makes a difference.
  Ns Lead(Ns most, uint32_t percent = 99) const {
    if (recent_count_ == 0) return std::min(kAtFirst, most);
    Ns lead{0};
    uint64_t covered = 0;
    for (size_t i = 0; i < recent_.size() && covered * 100 < uint64_t{recent_count_} * percent; ++i) {
      if (recent_[i] == 0) continue;
      const Ns edge{static_cast<int64_t>(LatencyHistogram::UpperNs(i))};
      if (edge > most) break;
      lead = edge;
      covered += recent_[i];
    }
    return lead;
  }
  // All waits so far.
  const LatencyHistogram& late() const { return all_; }

 private:
  static constexpr uint32_t kWindow = 2048;

  LatencyHistogram all_;
  std::array<uint32_t, LatencyHistogram::kBuckets> recent_{};
  uint32_t recent_count_ = 0;
};

}  // namespace vgpud::daemon
