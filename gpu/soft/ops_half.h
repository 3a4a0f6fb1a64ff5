// Values of IEEE binary16.
#pragma once

#include "gpu/soft/ops_common.h"

namespace vgpud::soft::VGPUD_ISA {

ALWAYS float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 31;
  const uint32_t fraction = h & 0x3ffu;
  if (exponent == 31) return Bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float v = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -v : v;
  }
  return Bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// To the nearest, ties to even; toward zero; down; up.
enum class Rounding { kNearest, kZero, kDown, kUp };

ALWAYS uint16_t FloatToHalf(double v, Rounding rounding = Rounding::kNearest) {
  const bool negative = Bits<uint64_t>(v) >> 63 != 0;
  const uint32_t sign = negative ? 0x8000u : 0;
  const double size = negative ? -v : v;
  if (v != v) return 0x7fff;
  if (size == __builtin_inf()) return static_cast<uint16_t>(sign | 0x7c00);
  const bool nearest = rounding == Rounding::kNearest;
  // Of what is inexact, away from zero.
  const bool away = rounding == (negative ? Rounding::kDown : Rounding::kUp);
  if (size >= 65520.0) return static_cast<uint16_t>(sign | (nearest || away ? 0x7c00 : 0x7bff));
  if (size == 0) return static_cast<uint16_t>(sign);
  int exponent = static_cast<int>(Bits<uint64_t>(size) >> 52) - 1023;
  if (exponent < -14) exponent = -14;
  // In units of the last place: the power of two is exact.
  const double units = size * Bits<double>(static_cast<uint64_t>(1023 + 10 - exponent) << 52);
  auto whole = static_cast<uint32_t>(units);
  const double rest = units - whole;
  if (nearest ? rest > 0.5 || (rest == 0.5 && (whole & 1) != 0) : away && rest > 0) ++whole;
  const uint32_t base = static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (base + whole));
}

}  // namespace vgpud::soft::VGPUD_ISA
