// A budget of so many units per second, with a reserve that fills up at rest. No clock: time is an argument.
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
  // by what one call takes, as long as the caller waits.
  void Take(uint32_t units, TimePoint now) {
    Fill(now);
    saved_ -= std::min<int64_t>(ns_per_unit_ * units, most_ + kSecondNs);
  }
  // Takes `units` if they are all there.
  [[nodiscard]] bool TryTake(uint32_t units, TimePoint now) {
    Fill(now);
    if (saved_ < ns_per_unit_ * units) return false;
    saved_ -= ns_per_unit_ * units;
    return true;
  }
  // How long until nothing is owed; 0: go on.
  [[nodiscard]] Ns Wait(TimePoint now) {
    Fill(now);
    return Ns{std::max<int64_t>(0, -saved_)};
  }

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
};

}  // namespace vgpud
