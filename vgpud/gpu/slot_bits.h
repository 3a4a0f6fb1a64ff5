// SPDX-License-Identifier: Apache-2.0
// Sets of slots, a bit for each.
#pragma once

#include <bit>
#include <cstdint>

namespace vgpud::daemon {

// Calls f with the number of each bit that is set.
template <class F>
void ForEachBit(uint64_t bits, F f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<uint32_t>(std::countr_zero(bits)));
}

}  // namespace vgpud::daemon
