// SPDX-License-Identifier: Apache-2.0
// What the properties of the scheduler draw their worlds from, with RapidCheck.
#pragma once

#include <rapidcheck.h>

#include <chrono>

#include "base/clock.h"

namespace vgpud {

inline constexpr TimePoint kStart{Ns{1}};

inline Ns Us(int us) { return std::chrono::microseconds{us}; }
// From `low` to below `high`.
inline int Any(int low, int high) { return *rc::gen::inRange(low, high); }
inline bool Coin() { return Any(0, 2) == 0; }
inline double D(Ns time) { return static_cast<double>(time.count()); }

}  // namespace vgpud
