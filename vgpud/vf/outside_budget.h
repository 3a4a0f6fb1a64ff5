// SPDX-License-Identifier: Apache-2.0
// What a VF may compute outside of its turns before what it does gives way to the others: processor time that comes in
// at a steady rate, of which kBurst can be saved up and kBurst be owed. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vgpud::daemon {

class OutsideBudget {
 public:
  static constexpr Ns kBurst = std::chrono::milliseconds{100};

  // Of the last `elapsed`: the VF has used `used` outside of its turns, and was entitled to `granted`. True: over() has
  // changed.
  bool Charge(Ns used, Ns granted, Ns elapsed) {
    if (over_) over_for_ += elapsed;
    balance_ = std::clamp(balance_ + granted - used, -kBurst, kBurst);
    // Back only when half is saved up again: it would come and go at every look.
    const bool over = over_ ? balance_ < kBurst / 2 : balance_ < Ns{0};
    if (over == over_) return false;
    over_ = over;
    times_ += over;
    return true;
  }
  bool over() const { return over_; }
  uint64_t times() const { return times_; }
  Ns over_for() const { return over_for_; }

 private:
  Ns balance_ = kBurst;
  bool over_ = false;
  uint64_t times_ = 0;
  Ns over_for_{0};
};

}  // namespace vgpud::daemon
