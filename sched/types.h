// SPDX-License-Identifier: Apache-2.0
// Values that scheduling decisions are made from. Plain data: no behaviour, no ownership.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/ids.h"

namespace vgpud {

inline constexpr uint32_t kDefaultWeight = 100;
inline constexpr uint32_t kWhole = 1'000'000;  // the whole GPU, in the parts that guarantee and limit are counted in
inline constexpr uint8_t kPriorities = 4;      // 0 = background .. 3 = most important
inline constexpr uint8_t kDefaultPriority = 1;
inline constexpr uint8_t kMaxGroups = 64;
inline constexpr uint8_t kNoGroup = kMaxGroups;

// What a policy may know of one VF at a turn boundary.
struct VfView {
  VfId vf{};
  uint32_t weight = kDefaultWeight;  // 1..10000
  Ns slice{0};                       // fixed slice; 0 = by weight
  bool runnable = false;             // has work and is allowed to run
  bool paused = false;               // not in the rotation, whatever it has to do: paused or parked. Never runnable
  uint8_t priority = kDefaultPriority;
  uint8_t group = kNoGroup;  // tenant group, or kNoGroup
  uint32_t guarantee = 0;    // parts of kWhole; policy `reserve` only, as the following two
  uint32_t limit = kWhole;   // parts of kWhole
  Ns burst{0};               // how much more than one slice may be saved up under the limit
  bool wake_first = false;   // when it gets work it may have its slice of the round early
  bool operator==(const VfView&) const = default;
};

}  // namespace vgpud
