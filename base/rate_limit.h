// A token bucket: so many events per second, after a rest that many at once. Pure: time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vgpud {

class RateLimit {
 public:
  // 0: no limit.
  RateLimit(uint32_t per_second, TimePoint now) : per_second_(per_second), tokens_(per_second), filled_(now) {}

  void Count() {
    ++count_;
    if (per_second_ != 0) --tokens_;
  }
  // How long nothing more may be served; 0: go on. A wait is counted.
  Ns Wait(TimePoint now) {
    if (per_second_ == 0 || tokens_ >= 0) return Ns{0};
    const int64_t per_token = kSecondNs / per_second_;
    const int64_t earned = std::max<int64_t>(0, (now - filled_).count()) / per_token;
    // Only whole tokens; the time of a broken one stays for the next time.
    if (tokens_ + earned >= int64_t{per_second_}) {
      tokens_ = per_second_;
      filled_ = now;
    } else {
      tokens_ += earned;
      filled_ += Ns{earned * per_token};
    }
    if (tokens_ >= 0) return Ns{0};
    const Ns wait = filled_ + Ns{-tokens_ * per_token} - now;
    ++throttled_;
    throttled_time_ += wait;
    return wait;
  }
  uint64_t count() const { return count_; }
  uint64_t throttled() const { return throttled_; }
  Ns throttled_time() const { return throttled_time_; }

 private:
  static constexpr int64_t kSecondNs = 1'000'000'000;

  const uint32_t per_second_;
  int64_t tokens_;
  TimePoint filled_;
  uint64_t count_ = 0;
  uint64_t throttled_ = 0;
  Ns throttled_time_{0};
};

}  // namespace vgpud
