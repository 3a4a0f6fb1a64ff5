// SPDX-License-Identifier: Apache-2.0
// What the vgpud-vf of one VF may ask of the daemon per second. vgpud-vf holds its guest to the same numbers; these
// hold a vgpud-vf that was taken over to them. No clock: time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/event_budget.h"
#include "base/token_bucket.h"

namespace vgpud::daemon {

class LinkBudget {
 public:
  // Beside the messages that opening and closing channels takes.
  static constexpr uint32_t kOtherMessagesPerSecond = 1000;

  // `events`: what the guest may cause (0 = no limit). An honest vgpud-vf stays below: it may have saved up a second's
  // worth of its own, and its messages may arrive in lumps, so that twice as many at once are allowed here.
  LinkBudget(const EventBudgets& events, TimePoint now)
      : messages_(MessagesPerSecond(Of(events, GuardedEvent::kOpen)),
                  MessagesPerSecond(Of(events, GuardedEvent::kOpen)), now),
        opens_(Slack(Of(events, GuardedEvent::kOpen)), 2 * Of(events, GuardedEvent::kOpen), now),
        faults_(Slack(Of(events, GuardedEvent::kFault)), 2 * Of(events, GuardedEvent::kFault), now) {}

  void CountMessage(TimePoint now) { messages_.Take(1, now); }
  void CountOpen(TimePoint now) { opens_.Take(1, now); }
  // An executor that died.
  void CountFault(TimePoint now) { faults_.Take(1, now); }
  // How long nothing more may be read from it; 0: go on.
  Ns Wait(TimePoint now) { return std::max({messages_.Wait(now), opens_.Wait(now), faults_.Wait(now)}); }

 private:
  static uint32_t Of(const EventBudgets& events, GuardedEvent event) {
    return std::min(events[static_cast<size_t>(event)], kMaxEventsPerSecond);
  }
  // A tenth more, for the difference of two clocks.
  static uint32_t Slack(uint32_t per_second) { return per_second + (per_second + 9) / 10; }
  static uint32_t MessagesPerSecond(uint32_t opens) { return opens == 0 ? 0 : kOtherMessagesPerSecond + 4 * opens; }

  TokenBucket messages_;
  TokenBucket opens_;
  TokenBucket faults_;
};

}  // namespace vgpud::daemon
