// SPDX-License-Identifier: Apache-2.0
// How long a thread that waits for the executor looks before it sleeps. A sleep and its wake-up cost more than a short
// wait, and a processor is worth more than a long one: so as long as its short waits usually are, while most are short.
// One long wait among them is the turn of somebody else.
#pragma once

#include <algorithm>
#include <chrono>

namespace vgpud::cuda {

class SpinTime {
 public:
  using Time = std::chrono::nanoseconds;
  // A round trip to an executor that looks takes a few microseconds.
  static constexpr Time kLeast{15'000};
  // What a wait takes that begins with a doorbell and ends with a wake-up.
  struct Range {
    Time most{60'000};         // without the wake-up: longer is slept
    Time with_sleep{120'000};  // a wait of up to this may have been one of up to `most`
  };

  explicit SpinTime(const Range& range) : range_(range) {}
  Time limit() const { return score_ == 0 ? kLeast : std::clamp(2 * usual_, kLeast, range_.most); }
  // A wait has lasted so long, in a sleep or not.
  void Waited(Time time) {
    if (time > range_.with_sleep) {
      score_ = std::max(0, score_ - kLongCosts);
      return;
    }
    score_ = std::min(kMostScore, score_ + 1);
    usual_ += (time - usual_) / 8;
  }

 private:
  static constexpr int kMostScore = 16;
  static constexpr int kLongCosts = 4;

  const Range range_;
  Time usual_{0};  // of short waits
  int score_ = 0;
};

}  // namespace vgpud::cuda
