// SPDX-License-Identifier: Apache-2.0
// How long a thread that waits for the executor looks before it sleeps. A processor is worth more than a long wait, but
// a sleep and its wake-up cost time of their own: where waits are usually short enough to look for, it looks for as
// long as they usually are and a wake-up takes. One long wait among them is the turn of somebody else.
#pragma once

#include <algorithm>
#include <chrono>

namespace vgpud::cuda {

class SpinTime {
 public:
  using Time = std::chrono::nanoseconds;
  // A round trip to an executor that looks takes a few microseconds.
  static constexpr Time kLeast{15'000};
  struct Range {
    Time most{200'000};    // a usual wait of more is slept
    Time wake_up{60'000};  // what a sleep adds to a wait
  };

  explicit SpinTime(const Range& range) : range_(range) {}
  Time limit() const { return score_ == 0 || usual_ > range_.most ? kLeast : usual_ + range_.wake_up; }
  // A wait has lasted so long, in a sleep or not.
  void Waited(Time time) {
    if (time > range_.most + range_.wake_up) {
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
