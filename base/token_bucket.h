// SPDX-License-Identifier: Apache-2.0
// A budget of so many units per second, with a reserve that fills up at rest. Counts what was taken and who had to
// wait. No clock: time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vgpud {

class TokenBucket {
 public:
  // `per_second` units, 0 = no limit; `burst`: the most that can be saved up, and what there is at first.
  TokenBucket(uint32_t per_second, uint32_t burst, TimePoint now)
      : ns_per_unit_(per_second != 0 ? kSecondNs / per_second : 0),
        most_(ns_per_unit_ * burst),
        saved_(most_),
        filled_(now) {}

  // Takes `units`, also when there are fewer: then nothing should be taken before Wait() is over. The debt is bounded
  // by what one call takes, as long as the caller waits, and by kMostOwed.
  void Take(uint64_t units, TimePoint now) {
    count_ += units;
    if (ns_per_unit_ == 0) return;
    Fill(now);
    const auto most_units = static_cast<uint64_t>(kMostOwed.count() / ns_per_unit_ + 1);
    const int64_t cost = ns_per_unit_ * static_cast<int64_t>(std::min(units, most_units));
    saved_ = std::max(saved_ - cost, -kMostOwed.count());
  }
  // Takes `units` if they are all there.
  [[nodiscard]] bool TryTake(uint32_t units, TimePoint now) {
    if (!Has(units, now)) return false;
    saved_ -= ns_per_unit_ * units;
    count_ += units;
    return true;
  }
  // Would TryTake take them?
  [[nodiscard]] bool Has(uint32_t units, TimePoint now) {
    Fill(now);
    return saved_ >= ns_per_unit_ * units;
  }
  // Is the whole reserve there?
  [[nodiscard]] bool IsFull(TimePoint now) {
    Fill(now);
    return saved_ == most_;
  }
  // How long until nothing is owed; 0: go on. A wait is counted.
  [[nodiscard]] Ns Wait(TimePoint now) {
    if (saved_ < 0) Fill(now);
    if (saved_ >= 0) return Ns{0};
    ++throttled_;
    throttled_time_ += Ns{-saved_};
    return Ns{-saved_};
  }

  // Units taken so far; times that Wait said to wait, and how long in all.
  uint64_t count() const { return count_; }
  uint64_t throttled() const { return throttled_; }
  Ns throttled_time() const { return throttled_time_; }

  static constexpr Ns kMostOwed = std::chrono::hours{1};

 private:
  static constexpr int64_t kSecondNs = 1'000'000'000;
  // Units are kept as the time that they take to come back.
  void Fill(TimePoint now) {
    const int64_t passed = std::max<int64_t>(0, (now - filled_).count());
    saved_ = passed >= most_ - saved_ ? most_ : saved_ + passed;
    filled_ = std::max(filled_, now);
  }

  int64_t ns_per_unit_;
  int64_t most_;
  int64_t saved_;
  TimePoint filled_;
  uint64_t count_ = 0;
  uint64_t throttled_ = 0;
  Ns throttled_time_{0};
};

}  // namespace vgpud
