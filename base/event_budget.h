// SPDX-License-Identifier: Apache-2.0
// What a guest may cause how often: the kinds of events that a VF counts, and how many of each it serves per second.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace vgpud {

enum class GuardedEvent : uint8_t {
  kDoorbell,    // a channel was kicked through BAR0
  kCommand,     // a control page command, a request or a connection on channel.sock
  kOpen,        // a channel was opened: an executor is started for it
  kReset,       // FLR, DEVICE_RESET
  kBadMessage,  // answered with an error
  kMessage,     // any message of a vfio-user client
  kFault,       // a channel ended with an error of its kernel or with the death of its executor
  kInterrupt,   // MSI raised
  kModuleKib,   // KiB of images that were loaded as modules
};
inline constexpr size_t kGuardedEvents = static_cast<size_t>(GuardedEvent::kModuleKib) + 1;
inline constexpr const char* kEventNames[kGuardedEvents] = {
    "doorbells", "commands", "opens", "resets", "bad_messages", "messages", "faults", "interrupts", "module_kib"};

// Events per second, by kind; after a rest that many at once. 0: no limit.
using EventBudgets = std::array<uint32_t, kGuardedEvents>;
inline constexpr uint32_t kMaxEventsPerSecond = 10'000'000;
// Several times what a guest does that launches and waits as fast as it can; of modules about what one processor reads.
inline constexpr EventBudgets kDefaultEventBudgets = {50'000, 20'000, 50, 50, 200, 200'000, 20, 50'000, 16'384};
// "KIND=NUMBER", KIND as in kEventNames. EINVAL: the text says what was wrong and what is possible.
[[nodiscard]] Result<void> ParseEventBudget(std::string_view text, EventBudgets& budgets);

}  // namespace vgpud
