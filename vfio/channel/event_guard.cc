// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/event_guard.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace vgpud::vfio {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

EventGuard::EventGuard(const EventBudgets& budgets, TimePoint now, std::function<void()> stirs)
    : budgets_(budgets), stirs_(std::move(stirs)) {
  for (size_t e = 0; e < kGuardedEvents; ++e)
    tokens_[e] = budgets_[e] != 0 ? int64_t{budgets_[e]} : std::numeric_limits<int64_t>::max();
  filled_.fill(now);
}

void EventGuard::Stir() {
  resting_ = false;
  stirs_();
}

// Only whole tokens; the time of a broken one stays for the next refill.
void EventGuard::Refill(TimePoint now) {
  for (size_t e = 0; e < kGuardedEvents; ++e) {
    if (budgets_[e] == 0) continue;
    const int64_t per_token = kSecondNs / budgets_[e];
    const int64_t earned = std::max<int64_t>(0, (now - filled_[e]).count()) / per_token;
    if (tokens_[e] + earned >= budgets_[e]) {
      tokens_[e] = budgets_[e];
      filled_[e] = now;
    } else {
      tokens_[e] += earned;
      filled_[e] += Ns{earned * per_token};
    }
    if (tokens_[e] >= 0) overdrawn_ &= ~(1u << e);
  }
}

bool EventGuard::Refuses(GuardedEvent event, TimePoint now) {
  Refill(now);
  const bool refuses = budget(event) != 0 && tokens_[static_cast<size_t>(event)] <= 0;
  throttled_[static_cast<size_t>(event)] += refuses;
  return refuses;
}

Ns EventGuard::Wait(uint32_t kinds, TimePoint now) {
  if (!Overdrawn(kinds)) return Ns{0};
  Refill(now);
  Ns longest{0};
  for (size_t e = 0; e < kGuardedEvents; ++e) {
    if ((kinds >> e & 1) == 0 || tokens_[e] >= 0) continue;
    ++throttled_[e];
    longest = std::max(longest, filled_[e] + Ns{-tokens_[e] * (kSecondNs / budgets_[e])} - now);
  }
  throttled_time_ += longest;
  return longest;
}

}  // namespace vgpud::vfio
