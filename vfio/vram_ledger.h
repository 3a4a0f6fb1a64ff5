// Who of the VF's executors holds how much of its VRAM quota.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "base/slice_page.h"

namespace vgpud {

class VramLedger {
 public:
  void SetQuota(uint64_t bytes) { quota_ = bytes; }
  // Takes `delta` more bytes for `channel`, or gives back when negative. False, and nothing changes, when that would
  // pass the quota or give back more than the channel holds.
  [[nodiscard]] bool Change(uint32_t channel, int64_t delta) {
    uint64_t& held = held_[channel];
    if (delta >= 0) {
      const auto more = static_cast<uint64_t>(delta);
      if (more > quota_ || used_ > quota_ - more) return false;
      held += more;
      used_ += more;
      return true;
    }
    if (delta == std::numeric_limits<int64_t>::min() || static_cast<uint64_t>(-delta) > held) return false;
    held -= static_cast<uint64_t>(-delta);
    used_ -= static_cast<uint64_t>(-delta);
    return true;
  }
  // Everything that `channel` holds is free again.
  void Release(uint32_t channel) {
    used_ -= held_[channel];
    held_[channel] = 0;
  }
  uint64_t used() const { return used_; }
  uint64_t quota() const { return quota_; }

 private:
  uint64_t quota_ = 0;
  uint64_t used_ = 0;
  std::array<uint64_t, kMaxExecutors> held_{};
};

}  // namespace vgpud
