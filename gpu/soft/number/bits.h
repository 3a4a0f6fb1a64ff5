// SPDX-License-Identifier: Apache-2.0
// The lowest block of the handlers: in the namespace of each instruction set, as everything above it.
#pragma once

#include <cstdint>

namespace vgpud::soft::VGPUD_ISA {

#define ALWAYS __attribute__((always_inline)) static inline

template <class To, class From>
ALWAYS To Bits(From v) {
  return __builtin_bit_cast(To, v);
}

}  // namespace vgpud::soft::VGPUD_ISA
