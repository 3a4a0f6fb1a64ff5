// SPDX-License-Identifier: Apache-2.0
// What reductions of stretches of memory do with two elements (PTX ISA "cp.reduce.async.bulk").
#pragma once

#include <cstddef>

#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

#define REDUCTION(Name, expr)      \
  struct Name {                    \
    template <class T>             \
    ALWAYS T Do(T d, T b) {        \
      return static_cast<T>(expr); \
    }                              \
  };
REDUCTION(ReduceAdd, d + b)
REDUCTION(ReduceMin, d < b ? d : b)
REDUCTION(ReduceMax, d > b ? d : b)
REDUCTION(ReduceAnd, d& b)
REDUCTION(ReduceOr, d | b)
REDUCTION(ReduceXor, d ^ b)
REDUCTION(ReduceInc, d >= b ? 0 : d + 1)
REDUCTION(ReduceDec, d == 0 || d > b ? b : d - 1)
struct ReduceAddFloat {
  template <class B>
  ALWAYS B Do(B d, B b) {
    if constexpr (sizeof(B) == 4) return Bits<B>(Canonical(Bits<float>(d) + Bits<float>(b)));
    if constexpr (sizeof(B) == 8) return Bits<B>(Bits<double>(d) + Bits<double>(b));
  }
};
template <class Format>
struct ReduceAddSmall {
  template <class T>
  ALWAYS T Do(T d, T b) {
    return static_cast<T>(Format::Put(SumToOdd(Format::Get(d), Format::Get(b))));
  }
};
// A NaN loses against a number; -0 is below +0.
template <class Format, bool kMax>
struct ReducePickSmall {
  template <class T>
  ALWAYS T Do(T d, T b) {
    if (SmallIsNan<Format>(d)) return SmallIsNan<Format>(b) ? static_cast<T>(kSmallNan) : b;
    if (SmallIsNan<Format>(b)) return d;
    const auto rank = [](uint32_t v) {
      const auto size = static_cast<int32_t>(v & ~kSmallSign);
      return (v & kSmallSign) != 0 ? -size - 1 : size;
    };
    return (rank(d) > rank(b)) == kMax ? d : b;
  }
};

// An atomic operation for each element; both are aligned to T.
template <class F, class T>
ALWAYS void ReduceInto(std::byte* to_bytes, const std::byte* from_bytes, uint32_t bytes) {
  auto* to = reinterpret_cast<T*>(to_bytes);
  const auto* from = reinterpret_cast<const T*>(from_bytes);
  for (uint32_t n = 0; n < bytes / sizeof(T); ++n) {
    T old = __atomic_load_n(to + n, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(to + n, &old, F::template Do<T>(old, from[n]), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
  }
}

}  // namespace vgpud::soft::VGPUD_ISA
