// Values of IEEE binary16.
#pragma once

#include "gpu/soft/ops_common.h"

namespace vgpud::soft::VGPUD_ISA {

// IEEE binary16.
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
// To the nearest, ties to even, or toward zero.
ALWAYS uint16_t FloatToHalf(double v, bool to_zero) {
  const uint64_t b = Bits<uint64_t>(v);
  const auto sign = static_cast<uint32_t>(b >> 48) & 0x8000u;
  const double size = v < 0 ? -v : v;
  if (v != v) return 0x7fff;
  if (to_zero ? size == __builtin_inf() : size >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  if (size >= 65504.0 && to_zero) return static_cast<uint16_t>(sign | 0x7bff);
  if (size == 0) return static_cast<uint16_t>(sign);
  int exponent = static_cast<int>(Bits<uint64_t>(size) >> 52) - 1023;
  if (exponent < -14) exponent = -14;
  // In units of the last place: the power of two is exact.
  const double units = size * Bits<double>(static_cast<uint64_t>(1023 + 10 - exponent) << 52);
  auto whole = static_cast<uint32_t>(units);
  const double rest = units - whole;
  if (!to_zero && (rest > 0.5 || (rest == 0.5 && (whole & 1)))) ++whole;
  const uint32_t base = static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (base + whole));
}

}  // namespace vgpud::soft::VGPUD_ISA
