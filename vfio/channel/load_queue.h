// SPDX-License-Identifier: Apache-2.0
// Executors that want to load modules: one after the other, when what was read for those before is paid for. Pure: time
// is an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>

#include "vfio/channel/event_guard.h"

namespace vgpud::vfio {

class LoadQueue {
 public:
  // `guard`: pays, with GuardedEvent::kModuleKib; outlives this.
  explicit LoadQueue(EventGuard& guard) : guard_(guard) {}

  // Nobody reads more for one module.
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;
  // However much one says that it has read: the others of its side wait no longer for that.
  static constexpr uint32_t kMostOwedSeconds = 4;

  // False: it waits already.
  [[nodiscard]] bool Ask(uint32_t channel) {
    if (std::find(waiting_.begin(), waiting_.end(), channel) != waiting_.end()) return false;
    waiting_.push_back(channel);
    return true;
  }
  void Forget(uint32_t channel) {
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), channel), waiting_.end());
    loading_.erase(channel);
  }
  // So much code was read. Counted once for each load that was allowed.
  void Pay(uint32_t channel, uint64_t code_bytes, TimePoint now) {
    if (loading_.erase(channel) == 0) return;
    const auto kib = static_cast<uint32_t>((std::min(code_bytes, kMostBytes) + 1023) / 1024);
    guard_.CountOwed(GuardedEvent::kModuleKib, kib, kMostOwedSeconds, now);
  }
  // Calls `allow` for those whose turn it is. How long until it is the next one's; 0: nobody waits.
  Ns Serve(TimePoint now, const std::function<void(uint32_t channel)>& allow) {
    while (!waiting_.empty()) {
      if (const Ns wait = guard_.Wait(EventGuard::Bit(GuardedEvent::kModuleKib), now); wait > Ns{0}) return wait;
      const uint32_t channel = waiting_.front();
      waiting_.pop_front();
      loading_.insert(channel);
      allow(channel);
    }
    return Ns{0};
  }

 private:
  EventGuard& guard_;
  std::deque<uint32_t> waiting_;  // channels
  std::set<uint32_t> loading_;    // may load, and have not said yet what they have read
};

}  // namespace vgpud::vfio
