// The two 16-bit formats of floating point, binary16 and bfloat16, and results in them that are rounded once.
#pragma once

#include "gpu/soft/ops_half.h"

namespace vgpud::soft::VGPUD_ISA {

inline constexpr uint32_t kSmallNan = 0x7fff;
inline constexpr uint32_t kSmallSign = 0x8000;

// To the nearest, ties to even, or toward zero.
ALWAYS uint32_t FloatToBfloat(float v, bool to_zero) {
  if (v != v) return kSmallNan;
  const uint32_t b = Bits<uint32_t>(v);
  return (to_zero ? b : b + 0x7fff + (b >> 16 & 1)) >> 16;
}
// a + b; made odd where it is inexact, so that rounding it once more is the same as rounding once.
ALWAYS double SumToOdd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  auto bits = Bits<uint64_t>(sum);
  if (error == 0 || error != error || (bits & 1) != 0) return sum;
  return Bits<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

struct Binary16 {
  static constexpr uint32_t kInfinity = 0x7c00;
  static constexpr uint32_t kOne = 0x3c00;
  ALWAYS double Get(uint32_t v) { return static_cast<double>(HalfToFloat(static_cast<uint16_t>(v))); }
  ALWAYS uint32_t Put(double v) { return FloatToHalf(v); }
};
struct Bfloat16 {
  static constexpr uint32_t kInfinity = 0x7f80;
  static constexpr uint32_t kOne = 0x3f80;
  ALWAYS double Get(uint32_t v) { return static_cast<double>(Bits<float>(v << 16)); }
  ALWAYS uint32_t Put(double v) {
    const auto near = static_cast<float>(v);
    auto bits = Bits<uint32_t>(near);
    if (v != v || static_cast<double>(near) == v) return FloatToBfloat(near, false);
    if ((near < 0 ? -static_cast<double>(near) : static_cast<double>(near)) > (v < 0 ? -v : v)) --bits;
    return FloatToBfloat(Bits<float>(bits | 1), false);
  }
};

template <class Format>
ALWAYS bool SmallIsNan(uint32_t v) {
  return (v & ~kSmallSign) > Format::kInfinity;
}
template <class Format>
ALWAYS uint32_t SmallFlush(uint32_t v) {
  return (v & Format::kInfinity) == 0 ? v & kSmallSign : v;
}
// [0, 1]; NaN becomes +0.
template <class Format>
ALWAYS uint32_t SmallSaturate(uint32_t v) {
  if ((v & kSmallSign) != 0 || SmallIsNan<Format>(v)) return 0;
  return v < Format::kOne ? v : Format::kOne;
}
template <class Format>
ALWAYS uint32_t SmallRelu(uint32_t v) {
  return (v & kSmallSign) != 0 && !SmallIsNan<Format>(v) ? 0 : v;
}

}  // namespace vgpud::soft::VGPUD_ISA
