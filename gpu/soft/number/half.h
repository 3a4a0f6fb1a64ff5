// SPDX-License-Identifier: Apache-2.0
// Values of IEEE binary16.
#pragma once

#include "gpu/soft/number/bits.h"

namespace vgpud::soft::VGPUD_ISA {

// Without branches, so that loops over lanes become vectors; FloatToHalf(float) too. NaN payloads are kept.
ALWAYS float HalfToFloat(uint32_t h) {
  const float scaled = Bits<float>((h & 0x7fffu) << 13) * 0x1p112f;
  const uint32_t special = (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
  return Bits<float>(Bits<uint32_t>(scaled) | special | (h & 0x8000u) << 16);
}
// To the nearest, ties to even. NaN becomes 0x7fff.
ALWAYS uint32_t FloatToHalf(float v) {
  const uint32_t size = Bits<uint32_t>(v) & 0x7fffffffu;
  const uint32_t sign = Bits<uint32_t>(v) >> 16 & 0x8000u;
  const uint32_t normal = ((size + 0xfffu + (size >> 13 & 1)) >> 13) - (112u << 10);
  // The last place of 0.5f is that of binary16's subnormal values.
  const uint32_t subnormal = Bits<uint32_t>(Bits<float>(size) + 0.5f) - Bits<uint32_t>(0.5f);
  uint32_t r = size < 113u << 23 ? subnormal : normal;
  r = size >= 143u << 23 ? 0x7c00u : r;
  r |= sign;
  return size > 0x7f800000u ? 0x7fffu : r;
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
