// SPDX-License-Identifier: Apache-2.0
// Waiting a moment without sleeping, for what comes sooner than a sleeping thread would wake up.
#pragma once

#include <xmmintrin.h>

#include <cstdint>

#include "base/clock.h"

namespace vgpud::soft {

// A little more than the executor takes from one step of a grid to the next.
inline constexpr uint64_t kSpinNs = 20'000;

// Looks until `seen()` is true, at most kSpinNs. False: it was not.
template <class F>
bool SpinUntil(F seen) {
  constexpr int kLooksPerClock = 16;
  const uint64_t end = MonotonicNs() + kSpinNs;
  do {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (seen()) return true;
      _mm_pause();
    }
  } while (MonotonicNs() < end);
  return false;
}

}  // namespace vgpud::soft
