// SPDX-License-Identifier: Apache-2.0
// How many events one VF may cause per second: what its guest does beyond that is read later, so that it slows down
// and nobody else does. One token bucket per kind of event. No clock: time is an argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/event_budget.h"

namespace vgpud::vfio {

class EventGuard {
 public:
  // `stirs`: called by the first event, and by the first one after each Rest().
  EventGuard(const EventBudgets& budgets, TimePoint now, std::function<void()> stirs);

  // One more, or `units` of what is counted in units. Always counted; whether it was one too many is what Wait says.
  void Count(GuardedEvent event, uint32_t units = 1) {
    counts_[static_cast<size_t>(event)] += units;
    tokens_[static_cast<size_t>(event)] -= units;
    if (tokens_[static_cast<size_t>(event)] < 0) overdrawn_ |= Bit(event);
    if (resting_) Stir();
  }
  // The same for what may be many seconds' worth at once: a rest before pays for one second of it, as ever, and what is
  // used up beyond the budget is at most what `seconds` bring back.
  void CountOwed(GuardedEvent event, uint32_t units, uint32_t seconds, TimePoint now) {
    Refill(now);
    Count(event, units);
    int64_t& tokens = tokens_[static_cast<size_t>(event)];
    tokens = std::max(tokens, -int64_t{budget(event)} * seconds);
  }
  // Events that somebody else has counted and limited.
  void Add(GuardedEvent event, uint64_t count, uint64_t throttled, Ns throttled_time) {
    counts_[static_cast<size_t>(event)] += count;
    throttled_[static_cast<size_t>(event)] += throttled;
    throttled_time_ += throttled_time;
    if (resting_) Stir();
  }
  // Is the budget of these used up, so that one more is to be refused? A refusal is counted as a throttled event.
  bool Refuses(GuardedEvent event, TimePoint now);
  // Has a budget of these kinds been used up since the last Wait? Cheap, without a clock.
  bool Overdrawn(uint32_t kinds) const { return (overdrawn_ & kinds) != 0; }
  // How long nothing of these kinds may be served; 0: go on. The wait is counted as throttled time.
  Ns Wait(uint32_t kinds, TimePoint now);

  void Rest() { resting_ = true; }

  uint32_t budget(GuardedEvent event) const { return budgets_[static_cast<size_t>(event)]; }
  uint64_t count(GuardedEvent event) const { return counts_[static_cast<size_t>(event)]; }
  // Times that Wait made somebody wait because of `event`.
  uint64_t throttled(GuardedEvent event) const { return throttled_[static_cast<size_t>(event)]; }
  Ns throttled_time() const { return throttled_time_; }

  static constexpr uint32_t Bit(GuardedEvent event) { return 1u << static_cast<unsigned>(event); }
  // All that a client causes by sending.
  static constexpr uint32_t kInput = (1u << static_cast<unsigned>(GuardedEvent::kInterrupt)) - 1;

 private:
  void Stir();
  void Refill(TimePoint now);

  const EventBudgets budgets_;
  std::array<int64_t, kGuardedEvents> tokens_;
  std::array<uint64_t, kGuardedEvents> counts_{};
  std::array<uint64_t, kGuardedEvents> throttled_{};
  std::array<TimePoint, kGuardedEvents> filled_;
  Ns throttled_time_{0};
  uint32_t overdrawn_ = 0;
  bool resting_ = true;
  const std::function<void()> stirs_;
};

}  // namespace vgpud::vfio
