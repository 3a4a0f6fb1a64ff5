// SPDX-License-Identifier: Apache-2.0
// Sums and products of binary16 for a whole warp with the processor's own conversions, which take as long for subnormal
// values as for others. Results are those of small_float.h.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

enum class HalfOp { kNone, kAdd, kSub, kMul, kFma };

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__F16C__))
inline constexpr bool kHasHalfVectors = true;

#if defined(__AVX512F__)
using HalfFloats = float __attribute__((vector_size(64)));
using HalfInts = int32_t __attribute__((vector_size(64)));
ALWAYS HalfFloats LoadHalves(const uint32_t* pairs) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(pairs)));
}
ALWAYS void StoreHalves(uint32_t* pairs, HalfFloats v, uint32_t kept) {
  const __m256i halves = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_store_si256(reinterpret_cast<__m256i*>(pairs),
                     _mm256_and_si256(halves, _mm256_set1_epi32(static_cast<int>(kept))));
}
#else
using HalfFloats = float __attribute__((vector_size(32)));
using HalfInts = int32_t __attribute__((vector_size(32)));
ALWAYS HalfFloats LoadHalves(const uint32_t* pairs) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(pairs)));
}
ALWAYS void StoreHalves(uint32_t* pairs, HalfFloats v, uint32_t kept) {
  const __m128i halves = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_store_si128(reinterpret_cast<__m128i*>(pairs), _mm_and_si128(halves, _mm_set1_epi32(static_cast<int>(kept))));
}
#endif

// See SumToOdd.
ALWAYS HalfFloats HalfSum(HalfFloats a, HalfFloats b) {
  const HalfFloats sum = a + b;
  const HalfFloats part = sum - a;
  const HalfFloats error = (a - (sum - part)) + (b - part);
  const auto bits = reinterpret_cast<HalfInts>(sum);
  const HalfInts inexact = ((error < 0) | (error > 0)) & ((bits & 1) == 0);
  const HalfInts away = ((bits ^ reinterpret_cast<HalfInts>(error)) >> 31) | 1;  // 1: the error has the sum's sign
  return reinterpret_cast<HalfFloats>(bits + (inexact & away));
}

// d = a op b, or a * b + c, of two values in each lane; without kPair of the lower one, the other becomes zero.
template <HalfOp kOp, bool kPair>
ALWAYS void HalfWarp(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  constexpr uint32_t kStep = sizeof(HalfFloats) / 8;  // lanes
  for (uint32_t l = 0; l < kLanes; l += kStep) {
    const HalfFloats x = LoadHalves(a + l);
    const HalfFloats y = LoadHalves(b + l);
    HalfFloats r;
    if constexpr (kOp == HalfOp::kAdd) {
      r = HalfSum(x, y);
    } else if constexpr (kOp == HalfOp::kSub) {
      r = HalfSum(x, -y);
    } else if constexpr (kOp == HalfOp::kMul) {
      r = x * y;
    } else {
      r = HalfSum(x * y, LoadHalves(c + l));
    }
    // The NaN that becomes 0x7fff.
    const HalfInts none = r != r;
    const auto bits = reinterpret_cast<HalfInts>(r);
    r = reinterpret_cast<HalfFloats>((bits & ~none) | (none & 0x7fffe000));
    StoreHalves(d + l, r, kPair ? 0xffffffffu : 0xffffu);
  }
}
#else
inline constexpr bool kHasHalfVectors = false;
template <HalfOp kOp, bool kPair>
ALWAYS void HalfWarp(uint32_t*, const uint32_t*, const uint32_t*, const uint32_t*) {}
#endif

}  // namespace vgpud::soft::VGPUD_ISA
