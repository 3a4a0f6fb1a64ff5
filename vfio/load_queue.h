// Executors that want to load modules: one after the other, each when the bytes of those before it are paid for. Pure:
// time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>

#include "vfio/event_guard.h"

namespace vgpud {

class LoadQueue {
 public:
  // `guard`: pays, with GuardedEvent::kModuleKib; outlives this.
  explicit LoadQueue(EventGuard& guard) : guard_(guard) {}

  // What more than an image can have is no image.
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

  // False: it waits already.
  [[nodiscard]] bool Ask(uint32_t channel, uint64_t image_bytes) {
    if (std::any_of(wishes_.begin(), wishes_.end(), [&](const Wish& w) { return w.channel == channel; })) return false;
    wishes_.push_back({channel, static_cast<uint32_t>((std::min(image_bytes, kMostBytes) + 1023) / 1024)});
    return true;
  }
  void Forget(uint32_t channel) {
    wishes_.erase(std::remove_if(wishes_.begin(), wishes_.end(), [&](const Wish& w) { return w.channel == channel; }),
                  wishes_.end());
  }
  // Calls `allow` for those whose turn it is. How long until it is the next one's; 0: nobody waits.
  Ns Serve(TimePoint now, const std::function<void(uint32_t channel)>& allow) {
    while (!wishes_.empty()) {
      if (const Ns wait = guard_.Wait(EventGuard::Bit(GuardedEvent::kModuleKib), now); wait > Ns{0}) return wait;
      const Wish wish = wishes_.front();
      wishes_.pop_front();
      guard_.Count(GuardedEvent::kModuleKib, wish.kib);
      allow(wish.channel);
    }
    return Ns{0};
  }

 private:
  struct Wish {
    uint32_t channel;
    uint32_t kib;
  };
  EventGuard& guard_;
  std::deque<Wish> wishes_;
};

}  // namespace vgpud
