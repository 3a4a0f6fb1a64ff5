// SPDX-License-Identifier: Apache-2.0
// The settings of a policy that belong to the GPU, not to one VF. Which policy understands which: sched/registry.h.
#pragma once

#include <array>
#include <cstdint>

#include "sched/types.h"

namespace vgpud {

enum class WhenIdle : uint8_t {
  kYield,  // a VF without work gives its turn away
  kHold,   // its turn stays its own, used or not
};

struct PolicyOptions {
  Ns base_slice{2'000'000};       // slice of a VF of weight 100
  Ns max_wait{0};                 // 0 = base_slice holds; else the base slice that lets nobody wait longer ...
  Ns min_slice{500'000};          // ... but not below this
  Ns max_slice{20'000'000};       // ... nor above this
  uint32_t averaging_factor = 1;  // 1..60: a turn repays 1/factor of the debt
  uint32_t floor_percent = 5;     // 1..25: what each lower priority class gets at least while a higher one is busy
  WhenIdle idle = WhenIdle::kYield;
  // Idle yield: how long a VF without work keeps its turn. As Anticipation::Options.
  Ns idle_grace{0};
  uint32_t anticipate_percent = 0;
  Ns anticipate_most{500'000};
  std::array<uint32_t, kMaxGroups> group_weights = [] {
    std::array<uint32_t, kMaxGroups> all{};
    all.fill(kDefaultWeight);
    return all;
  }();
  bool operator==(const PolicyOptions&) const = default;
};

}  // namespace vgpud
