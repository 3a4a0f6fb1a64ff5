// SPDX-License-Identifier: Apache-2.0
// Building blocks of the handlers. Every file of handlers is compiled once per instruction set with VGPUD_ISA naming
// its own namespace, so nothing here may be shared between them: static or in that namespace only, no std templates.
#pragma once

#if defined(__AVX2__) || defined(__SSE4_1__)
#include <immintrin.h>
#endif

#include "gpu/soft/number/bits.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft::VGPUD_ISA {

template <class T>
struct SlotOf {
  using type = T;
};
template <>
struct SlotOf<uint8_t> {
  using type = uint32_t;
};
template <>
struct SlotOf<int8_t> {
  using type = uint32_t;
};
template <>
struct SlotOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct SlotOf<int16_t> {
  using type = uint32_t;
};
// What a lane of a T operand is stored as: 16 and 8 bit values in the low part of a 32-bit slot.
template <class T>
using Slot = typename SlotOf<T>::type;

template <class T>
ALWAYS const Slot<T>* In(const Warp& w, const Inst* i, int operand) {
  return reinterpret_cast<const Slot<T>*>(w.base[i->base[operand]] + i->offset[operand]);
}
template <class T>
ALWAYS Slot<T>* Out(const Warp& w, const Inst* i, int operand) {
  return reinterpret_cast<Slot<T>*>(w.base[i->base[operand]] + i->offset[operand]);
}
ALWAYS uint32_t& Pred(const Warp& w, const Inst* i, int operand) {
  return *reinterpret_cast<uint32_t*>(w.base[i->base[operand]] + i->offset[operand]);
}
ALWAYS void WritePred(uint32_t& p, uint32_t value, uint32_t mask) { p = (p & ~mask) | (value & mask); }

template <class T>
ALWAYS T Value(Slot<T> v) {
  return static_cast<T>(v);
}
// Narrow signed results are sign-extended to the slot, unsigned ones zero-extended ("Operand Size Exceeding").
template <class T>
ALWAYS Slot<T> Widen(T v) {
  return static_cast<Slot<T>>(v);
}
template <>
inline Slot<int8_t> Widen<int8_t>(int8_t v) {
  return static_cast<uint32_t>(static_cast<int32_t>(v));
}
template <>
inline Slot<int16_t> Widen<int16_t>(int16_t v) {
  return static_cast<uint32_t>(static_cast<int32_t>(v));
}

// d[l] = t[l] for the lanes of `mask`.
template <class S>
ALWAYS void StoreMasked(S* d, const S* t, uint32_t mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(S) == 4) {
    _mm512_mask_store_epi32(d, static_cast<__mmask16>(mask), _mm512_load_si512(t));
    _mm512_mask_store_epi32(d + 16, static_cast<__mmask16>(mask >> 16), _mm512_load_si512(t + 16));
  } else {
    for (int q = 0; q < 4; ++q)
      _mm512_mask_store_epi64(d + 8 * q, static_cast<__mmask8>(mask >> (8 * q)), _mm512_load_si512(t + 8 * q));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(S) == 4) {
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    for (int q = 0; q < 4; ++q) {
      const __m256i m = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask >> (8 * q))), bits);
      _mm256_maskstore_epi32(reinterpret_cast<int*>(d + 8 * q), _mm256_cmpeq_epi32(m, bits),
                             _mm256_load_si256(reinterpret_cast<const __m256i*>(t + 8 * q)));
    }
  } else {
    const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
    for (int q = 0; q < 8; ++q) {
      const __m256i m = _mm256_and_si256(_mm256_set1_epi64x(mask >> (4 * q)), bits);
      _mm256_maskstore_epi64(reinterpret_cast<long long*>(d + 4 * q), _mm256_cmpeq_epi64(m, bits),
                             _mm256_load_si256(reinterpret_cast<const __m256i*>(t + 4 * q)));
    }
  }
#else
  if constexpr (sizeof(S) == 4) {
    const __m128i bits = _mm_setr_epi32(1, 2, 4, 8);
    for (int q = 0; q < 8; ++q) {
      const __m128i m = _mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(static_cast<int>(mask >> (4 * q))), bits), bits);
      auto* to = reinterpret_cast<__m128i*>(d + 4 * q);
      _mm_store_si128(
          to, _mm_blendv_epi8(_mm_load_si128(to), _mm_load_si128(reinterpret_cast<const __m128i*>(t + 4 * q)), m));
    }
  } else {
    for (uint32_t m = mask; m != 0; m &= m - 1) d[__builtin_ctz(m)] = t[__builtin_ctz(m)];
  }
#endif
}

// Bit l of the result = sign of t[l].
ALWAYS uint32_t SignBits(const uint32_t* t) {
#if defined(__AVX512F__)
  return static_cast<uint32_t>(_mm512_movepi32_mask(_mm512_load_si512(t))) |
         static_cast<uint32_t>(_mm512_movepi32_mask(_mm512_load_si512(t + 16))) << 16;
#elif defined(__AVX2__)
  uint32_t r = 0;
  for (int q = 0; q < 4; ++q)
    r |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_load_ps(reinterpret_cast<const float*>(t) + 8 * q)))
         << (8 * q);
  return r;
#else
  uint32_t r = 0;
  for (int q = 0; q < 8; ++q)
    r |= static_cast<uint32_t>(_mm_movemask_ps(_mm_load_ps(reinterpret_cast<const float*>(t) + 4 * q))) << (4 * q);
  return r;
#endif
}

// out(operand)[l] = f(l) for the active lanes. f runs for inactive lanes too: it must have no effects and never trap.
// An output slot is either a source slot itself or apart from it.
template <class T, class F>
ALWAYS void Map(const Warp& w, const Inst* i, int operand, F f) {
  Slot<T>* d = Out<T>(w, i, operand);
  if (w.mask == kFullMask) {
#pragma GCC ivdep
    for (uint32_t l = 0; l < kLanes; ++l) d[l] = Widen<T>(f(l));
    return;
  }
  alignas(64) Slot<T> t[kLanes];
  for (uint32_t l = 0; l < kLanes; ++l) t[l] = Widen<T>(f(l));
  StoreMasked(d, t, w.mask);
}

// Same for what does not vectorise: f runs for active lanes only.
template <class T, class F>
ALWAYS void Each(const Warp& w, const Inst* i, int operand, F f) {
  Slot<T>* d = Out<T>(w, i, operand);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    d[l] = Widen<T>(f(l));
  }
}

template <class T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<double> = true;

// NaN results of f32 arithmetic are 0x7fffffff.
ALWAYS float Canonical(float v) { return v != v ? Bits<float>(0x7fffffffu) : v; }
ALWAYS double Canonical(double v) { return v; }
ALWAYS float Flush(float v) {
  const uint32_t b = Bits<uint32_t>(v);
  return (b & 0x7f800000u) == 0 ? Bits<float>(b & 0x80000000u) : v;
}
// [0, 1]; NaN becomes +0.
template <class T>
ALWAYS T Saturate(T v) {
  return v > T(0) ? (v < T(1) ? v : T(1)) : T(0);
}

template <class F>
struct UnaryOf {
  template <class T>
  static const Inst* Run(Warp& w, const Inst* i) {
    const Slot<T>* a = In<T>(w, i, 1);
    Map<T>(w, i, 0, [&](uint32_t l) { return static_cast<T>(F::template Do<T>(Value<T>(a[l]))); });
    return i + 1;
  }
};
template <class F>
struct BinaryOf {
  template <class T>
  static const Inst* Run(Warp& w, const Inst* i) {
    const Slot<T>* a = In<T>(w, i, 1);
    const Slot<T>* b = In<T>(w, i, 2);
    Map<T>(w, i, 0, [&](uint32_t l) { return static_cast<T>(F::template Do<T>(Value<T>(a[l]), Value<T>(b[l]))); });
    return i + 1;
  }
};
template <class F>
struct TernaryOf {
  template <class T>
  static const Inst* Run(Warp& w, const Inst* i) {
    const Slot<T>* a = In<T>(w, i, 1);
    const Slot<T>* b = In<T>(w, i, 2);
    const Slot<T>* c = In<T>(w, i, 3);
    Map<T>(w, i, 0, [&](uint32_t l) {
      return static_cast<T>(F::template Do<T>(Value<T>(a[l]), Value<T>(b[l]), Value<T>(c[l])));
    });
    return i + 1;
  }
};

// True if all lanes are here that some active lane wants; else the handler must return `i`.
ALWAYS bool Gathered(Warp& w, const Inst* i, int operand) {
  if (w.mask == w.live) {
    w.force_sync = false;
    return true;
  }
  const uint32_t* members = In<uint32_t>(w, i, operand);
  uint32_t all = 0;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) all |= members[__builtin_ctz(m)];
  return WarpSyncReady(w, i, all);
}

}  // namespace vgpud::soft::VGPUD_ISA
