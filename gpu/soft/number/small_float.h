// SPDX-License-Identifier: Apache-2.0
// The two 16-bit formats of floating point, binary16 and bfloat16, and results in them that are rounded once.
#pragma once

#include "gpu/soft/number/half.h"

namespace vgpud::soft::VGPUD_ISA {

inline constexpr uint32_t kSmallNan = 0x7fff;
inline constexpr uint32_t kSmallSign = 0x8000;

// To the nearest, ties to even, or toward zero.
ALWAYS uint32_t FloatToBfloat(float v, bool to_zero) {
  const auto b = Bits<uint32_t>(v);
  const uint32_t r = (to_zero ? b : b + 0x7fff + (b >> 16 & 1)) >> 16;
  return v != v ? kSmallNan : r;
}
// a + b; made odd where it is inexact, so that rounding it once more is the same as rounding once.
ALWAYS float SumToOdd(float a, float b) {
  const float sum = a + b;
  const float part = sum - a;
  const float error = (a - (sum - part)) + (b - part);
  const auto bits = Bits<uint32_t>(sum);
  const bool exact = !(error < 0 || error > 0) || (bits & 1) != 0;
  return Bits<float>(exact ? bits : (error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
ALWAYS double SumToOdd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  const auto bits = Bits<uint64_t>(sum);
  const bool exact = !(error < 0 || error > 0) || (bits & 1) != 0;
  return Bits<double>(exact ? bits : (error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

// Math: holds the product of two values exactly.
struct Binary16 {
  using Math = float;
  static constexpr uint32_t kInfinity = 0x7c00;
  static constexpr uint32_t kOne = 0x3c00;
  ALWAYS float Get(uint32_t v) { return HalfToFloat(v); }
  ALWAYS uint32_t Put(float v) { return FloatToHalf(v); }
  ALWAYS uint32_t Put(double v) { return FloatToHalf(v, Rounding::kNearest); }
};
struct Bfloat16 {
  using Math = double;
  static constexpr uint32_t kInfinity = 0x7f80;
  static constexpr uint32_t kOne = 0x3f80;
  ALWAYS double Get(uint32_t v) { return static_cast<double>(Bits<float>(v << 16)); }
  ALWAYS uint32_t Put(double v) {
    const auto near = static_cast<float>(v);
    const auto wide = static_cast<double>(near);
    const auto bits = Bits<uint32_t>(near);
    const uint32_t less = (near < 0 ? -wide : wide) > (v < 0 ? -v : v) ? bits - 1 : bits;
    const bool inexact = wide < v || wide > v;
    return FloatToBfloat(Bits<float>(inexact ? less | 1 : bits), false);
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
  return v > kSmallSign + Format::kInfinity || v < kSmallSign ? v : 0;
}

}  // namespace vgpud::soft::VGPUD_ISA
