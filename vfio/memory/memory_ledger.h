// SPDX-License-Identifier: Apache-2.0
// Who of the VF's executors holds how much of a quota: of its VRAM, or of what it may take of the host's memory.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "base/slice_page.h"

namespace vgpud::vfio {

class MemoryLedger {
 public:
  void SetQuota(uint64_t bytes) { quota_ = bytes; }
  // Is no more than that in use?
  bool Fits(uint64_t bytes) const { return used_ <= bytes; }
  // Takes `delta` more bytes for `channel`, or gives back when negative. False, and nothing changes, when that would
  // pass the quota or give back more than the channel holds.
  [[nodiscard]] bool Change(uint32_t channel, int64_t delta) {
    uint64_t& held = held_[channel];
    if (delta >= 0) {
      if (!Take(static_cast<uint64_t>(delta))) return false;
      held += static_cast<uint64_t>(delta);
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
  // What no executor holds. False: it would pass the quota.
  [[nodiscard]] bool Take(uint64_t bytes) {
    if (bytes > quota_ || used_ > quota_ - bytes) return false;
    used_ += bytes;
    return true;
  }
  // `bytes` of what Take() took.
  void Give(uint64_t bytes) { used_ -= bytes; }
  uint64_t used() const { return used_; }
  uint64_t held(uint32_t channel) const { return held_[channel]; }
  uint64_t quota() const { return quota_; }

 private:
  uint64_t quota_ = 0;
  uint64_t used_ = 0;
  std::array<uint64_t, kMaxExecutors> held_{};
};

struct MemoryLedgers {
  MemoryLedger vram;
  MemoryLedger host;
  // Both quotas, or neither: false when more is in use.
  [[nodiscard]] bool Resize(uint64_t vram_bytes, uint64_t host_bytes) {
    if (!vram.Fits(vram_bytes) || !host.Fits(host_bytes)) return false;
    vram.SetQuota(vram_bytes);
    host.SetQuota(host_bytes);
    return true;
  }
};

}  // namespace vgpud::vfio
