// SPDX-License-Identifier: Apache-2.0
// Comparisons of lanes, to a mask.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

#define COMPARE(Name, expr)    \
  struct Name {                \
    template <class T>         \
    ALWAYS bool Do(T a, T b) { \
      return expr;             \
    }                          \
  };
COMPARE(Eq, a == b)
COMPARE(Ne, a != b)
COMPARE(Lt, a < b)
COMPARE(Le, a <= b)
COMPARE(Gt, a > b)
COMPARE(Ge, a >= b)
COMPARE(OrderedNe, a<b || a> b)
COMPARE(Equ, !(a < b || a > b))
COMPARE(Ltu, !(a >= b))
COMPARE(Leu, !(a > b))
COMPARE(Gtu, !(a <= b))
COMPARE(Geu, !(a < b))
COMPARE(Num, a == a && b == b)
COMPARE(Nan, a != a || b != b)

template <class C, class T>
ALWAYS uint32_t Mask(const Warp& w, const Inst* i, int operand) {
  const Slot<T>* a = In<T>(w, i, operand);
  const Slot<T>* b = In<T>(w, i, operand + 1);
  alignas(64) uint32_t t[kLanes];
  if constexpr (sizeof(T) == 4 && kIsFloat<T>) {
    if (i->flags & kFtz) {
      for (uint32_t l = 0; l < kLanes; ++l) t[l] = C::template Do<T>(Flush(a[l]), Flush(b[l])) ? ~0u : 0u;
      return SignBits(t);
    }
  }
  for (uint32_t l = 0; l < kLanes; ++l) t[l] = C::template Do<T>(Value<T>(a[l]), Value<T>(b[l])) ? ~0u : 0u;
  return SignBits(t);
}

// aux: 0 none, 1 and, 2 or, 3 xor with predicate c.
ALWAYS uint32_t Combine(uint8_t how, uint32_t value, uint32_t c) {
  if (how == 1) return value & c;
  if (how == 2) return value | c;
  if (how == 3) return value ^ c;
  return value;
}

}  // namespace vgpud::soft::VGPUD_ISA
