// Values that scheduling decisions are made from. Plain data: no behaviour, no ownership.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/ids.h"

namespace vgpud {

inline constexpr uint32_t kDefaultWeight = 100;

// What a policy may know of one VF at a turn boundary.
struct VfView {
  VfId vf{};
  uint32_t weight = kDefaultWeight;  // 1..10000
  Ns slice{0};                       // fixed slice; 0 = by weight
  bool runnable = false;             // has work and is allowed to run
};

}  // namespace vgpud
