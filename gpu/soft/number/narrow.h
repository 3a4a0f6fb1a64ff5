// SPDX-License-Identifier: Apache-2.0
// Values of eight bits and less: e4m3, e5m2, e3m2, e2m3, e2m1 and the scale ue8m0 (PTX ISA "Alternate Floating-Point
// Data Formats"). None of it branches, so that loops over lanes become vectors.
#pragma once

#include "gpu/soft/number/bits.h"

namespace vgpud::soft::VGPUD_ISA {

// kLargest: of the finite magnitudes. kNan: what a NaN becomes; the formats that have none make it their largest.
template <uint32_t kExponentBits, uint32_t kFractionBits, uint32_t kLargestFinite, uint32_t kOfNan>
struct Narrow {
  static constexpr uint32_t kFraction = kFractionBits;
  static constexpr uint32_t kBits = 1 + kExponentBits + kFractionBits;
  static constexpr uint32_t kBias = (1u << (kExponentBits - 1)) - 1;
  static constexpr uint32_t kSign = 1u << (kBits - 1);
  static constexpr uint32_t kLargest = kLargestFinite;
  static constexpr uint32_t kNan = kOfNan;
  static constexpr bool kHasNan = kOfNan > kLargestFinite;
};
using E4m3 = Narrow<4, 3, 0x7e, 0x7f>;
using E5m2 = Narrow<5, 2, 0x7b, 0x7f>;
using E3m2 = Narrow<3, 2, 0x1f, 0x1f>;
using E2m3 = Narrow<2, 3, 0x1f, 0x1f>;
using E2m1 = Narrow<2, 1, 0x7, 0x7>;

// 2^exponent, of normal numbers.
ALWAYS constexpr float PowerOfTwo(int exponent) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(127 + exponent) << 23);
}

// To the nearest, ties to even; what is too large becomes the largest of its sign (.satfinite).
template <class F, bool kRelu>
ALWAYS uint32_t FloatToNarrow(float v) {
  const auto bits = Bits<uint32_t>(v);
  const uint32_t size = bits & 0x7fffffffu;
  constexpr uint32_t kShift = 23 - F::kFraction;
  constexpr uint32_t kRebias = (127 - F::kBias) << F::kFraction;
  // The last place of kUnit is that of the format's subnormal values.
  constexpr float kUnit = PowerOfTwo(1 - static_cast<int>(F::kBias + F::kFraction) + 23);
  const uint32_t normal = ((size + ((1u << (kShift - 1)) - 1) + (size >> kShift & 1)) >> kShift) - kRebias;
  const uint32_t subnormal = Bits<uint32_t>(Bits<float>(size) + kUnit) - Bits<uint32_t>(kUnit);
  uint32_t r = size < (128 - F::kBias) << 23 ? subnormal : normal;
  r = r < F::kLargest ? r : F::kLargest;
  const uint32_t negative = bits >> 31;
  r = kRelu ? (negative != 0 ? 0 : r) : r | negative * F::kSign;
  return size > 0x7f800000u ? F::kNan : r;
}

// Exact. A NaN is 0x7fffffff; bits above those of the format do not count.
template <class F>
ALWAYS float NarrowToFloat(uint32_t v) {
  const uint32_t size = v & (F::kSign - 1);
  const float scaled = Bits<float>(size << (23 - F::kFraction)) * PowerOfTwo(127 - static_cast<int>(F::kBias));
  const uint32_t signed_bits = Bits<uint32_t>(scaled) | (v & F::kSign) << (32 - F::kBits);
  if constexpr (!F::kHasNan) return Bits<float>(signed_bits);
  // Of e5m2 what follows the largest is infinity, of e4m3 a NaN.
  constexpr bool kHasInfinity = F::kLargest + 1 != F::kNan;
  const uint32_t infinite = kHasInfinity && size == F::kLargest + 1 ? 0x7f800000u : 0;
  const bool nan = size > F::kLargest + (kHasInfinity ? 1 : 0);
  return Bits<float>(nan ? 0x7fffffffu : signed_bits | infinite);
}

// ue8m0: 2^(v - 127), 255 is a NaN. The size of the value counts, its sign does not.
template <bool kUp, bool kSatfinite>
ALWAYS uint32_t FloatToScale(float v) {
  const uint32_t size = Bits<uint32_t>(v) & 0x7fffffffu;
  const uint32_t exponent = size >> 23;
  // 2^-127, the smallest scale, is a subnormal f32: half of the fraction.
  const uint32_t exact = exponent == 0 ? 0x400000u : 0;
  const uint32_t up = kUp && size < 0x7f800000u && (size & 0x7fffffu) > exact ? 1 : 0;
  const uint32_t r = exponent + up;
  return kSatfinite && size <= 0x7f800000u && r == 255 ? 254 : r;
}
ALWAYS float ScaleToFloat(uint32_t v) {
  const uint32_t bits = v << 23;
  return Bits<float>(v == 255 ? 0x7fffffffu : v == 0 ? 0x400000u : bits);
}

}  // namespace vgpud::soft::VGPUD_ISA
