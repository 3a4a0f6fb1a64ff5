// SPDX-License-Identifier: Apache-2.0
// Which part of the last second a VF had the GPU, from looks at its account. Pure: time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>

#include "base/clock.h"

namespace vgpud::daemon {

class UseWindow {
 public:
  // Of the time from the last look that is a second old to `now`, in percent; before there is one, from the first look.
  uint32_t Look(uint64_t received_ns, TimePoint now) {
    if (!looks_.empty() && (now <= looks_.back().at || received_ns < looks_.back().received_ns)) looks_.clear();
    while (looks_.size() > 1 && looks_[1].at <= now - kLength) looks_.pop_front();
    looks_.push_back({now, received_ns});
    const Seen& first = looks_.front();
    const auto length = static_cast<uint64_t>((now - first.at).count());
    return length == 0 ? 0
                       : static_cast<uint32_t>(
                             std::min(kAll, ((received_ns - first.received_ns) * kAll + length / 2) / length));
  }

 private:
  static constexpr Ns kLength = std::chrono::seconds{1};
  static constexpr uint64_t kAll = 100;
  struct Seen {
    TimePoint at{};
    uint64_t received_ns = 0;
  };
  std::deque<Seen> looks_;
};

}  // namespace vgpud::daemon
