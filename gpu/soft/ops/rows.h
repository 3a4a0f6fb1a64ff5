// SPDX-License-Identifier: Apache-2.0
// Loads and stores of whole warps, one element per lane, row by row: a row is some neighbouring lanes whose addresses
// are looked at together. Most rows are one stretch of memory or one place, checked once.
#pragma once

#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {

#if defined(__AVX512F__)
inline constexpr uint32_t kRow = 16;
#else
inline constexpr uint32_t kRow = 8;
#endif

enum class Pattern { kStretch, kSame, kMixed };

// 0, step, 2 * step, ...
template <class T, uint32_t kStep>
struct Steps {
  alignas(64) T at[kRow];
  constexpr Steps() : at() {
    for (uint32_t l = 0; l < kRow; ++l) at[l] = static_cast<T>(kStep * l);
  }
};
template <class T, uint32_t kStep>
inline constexpr Steps<T, kStep> kSteps;

// How the addresses of a row lie, in elements of kStep bytes.
template <uint32_t kStep>
ALWAYS Pattern PatternOf(const uint32_t* a) {
  const uint32_t* s = kSteps<uint32_t, kStep>.at;
#if defined(__AVX512F__)
  const __m512i d = _mm512_sub_epi32(_mm512_load_si512(a), _mm512_set1_epi32(static_cast<int>(a[0])));
  if (_mm512_cmpneq_epi32_mask(d, _mm512_load_si512(s)) == 0) return Pattern::kStretch;
  return _mm512_test_epi32_mask(d, d) == 0 ? Pattern::kSame : Pattern::kMixed;
#elif defined(__AVX2__)
  const __m256i d = _mm256_sub_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(a)),
                                     _mm256_set1_epi32(static_cast<int>(a[0])));
  const __m256i x = _mm256_xor_si256(d, _mm256_load_si256(reinterpret_cast<const __m256i*>(s)));
  if (_mm256_testz_si256(x, x)) return Pattern::kStretch;
  return _mm256_testz_si256(d, d) ? Pattern::kSame : Pattern::kMixed;
#else
  const __m128i first = _mm_set1_epi32(static_cast<int>(a[0]));
  __m128i uneven = _mm_setzero_si128();
  __m128i varies = _mm_setzero_si128();
  for (uint32_t l = 0; l < kRow; l += 4) {
    const __m128i d = _mm_sub_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(a + l)), first);
    varies = _mm_or_si128(varies, d);
    uneven = _mm_or_si128(uneven, _mm_xor_si128(d, _mm_load_si128(reinterpret_cast<const __m128i*>(s + l))));
  }
  if (_mm_testz_si128(uneven, uneven)) return Pattern::kStretch;
  return _mm_testz_si128(varies, varies) ? Pattern::kSame : Pattern::kMixed;
#endif
}
template <uint32_t kStep>
ALWAYS Pattern PatternOf(const uint64_t* a) {
  const uint64_t* s = kSteps<uint64_t, kStep>.at;
#if defined(__AVX512F__)
  const __m512i first = _mm512_set1_epi64(static_cast<long long>(a[0]));
  const __m512i d0 = _mm512_sub_epi64(_mm512_load_si512(a), first);
  const __m512i d1 = _mm512_sub_epi64(_mm512_load_si512(a + 8), first);
  if ((_mm512_cmpneq_epi64_mask(d0, _mm512_load_si512(s)) | _mm512_cmpneq_epi64_mask(d1, _mm512_load_si512(s + 8))) ==
      0)
    return Pattern::kStretch;
  const __m512i d = _mm512_or_si512(d0, d1);
  return _mm512_test_epi64_mask(d, d) == 0 ? Pattern::kSame : Pattern::kMixed;
#elif defined(__AVX2__)
  const __m256i first = _mm256_set1_epi64x(static_cast<long long>(a[0]));
  const __m256i d0 = _mm256_sub_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(a)), first);
  const __m256i d1 = _mm256_sub_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(a + 4)), first);
  const __m256i x = _mm256_or_si256(_mm256_xor_si256(d0, _mm256_load_si256(reinterpret_cast<const __m256i*>(s))),
                                    _mm256_xor_si256(d1, _mm256_load_si256(reinterpret_cast<const __m256i*>(s + 4))));
  if (_mm256_testz_si256(x, x)) return Pattern::kStretch;
  const __m256i d = _mm256_or_si256(d0, d1);
  return _mm256_testz_si256(d, d) ? Pattern::kSame : Pattern::kMixed;
#else
  const __m128i first = _mm_set1_epi64x(static_cast<long long>(a[0]));
  __m128i uneven = _mm_setzero_si128();
  __m128i varies = _mm_setzero_si128();
  for (uint32_t l = 0; l < kRow; l += 2) {
    const __m128i d = _mm_sub_epi64(_mm_load_si128(reinterpret_cast<const __m128i*>(a + l)), first);
    varies = _mm_or_si128(varies, d);
    uneven = _mm_or_si128(uneven, _mm_xor_si128(d, _mm_load_si128(reinterpret_cast<const __m128i*>(s + l))));
  }
  if (_mm_testz_si128(uneven, uneven)) return Pattern::kStretch;
  return _mm_testz_si128(varies, varies) ? Pattern::kSame : Pattern::kMixed;
#endif
}

// Row of slots = v.
ALWAYS void Splat(uint32_t* d, uint32_t v) {
#if defined(__AVX512F__)
  _mm512_store_si512(d, _mm512_set1_epi32(static_cast<int>(v)));
#elif defined(__AVX2__)
  _mm256_store_si256(reinterpret_cast<__m256i*>(d), _mm256_set1_epi32(static_cast<int>(v)));
#else
  for (uint32_t l = 0; l < kRow; l += 4)
    _mm_store_si128(reinterpret_cast<__m128i*>(d + l), _mm_set1_epi32(static_cast<int>(v)));
#endif
}
ALWAYS void Splat(uint64_t* d, uint64_t v) {
  for (uint32_t l = 0; l < kRow; ++l) d[l] = v;
}

// Spaces in which rows are accessed: addresses in slots of Offset + Base() = bytes from Host().
struct GlobalRows {
  using Offset = uint64_t;
  ALWAYS Offset Base(const Inst* i) { return static_cast<uint64_t>(i->imm) - kArenaVa; }
  ALWAYS std::byte* Host(const Warp& w) { return w.arena; }
  ALWAYS bool Fits(const Warp& w, Offset o, uint32_t bytes) {
    return o < w.arena_bytes && bytes <= w.arena_bytes - o && w.pages[o >> kPageShift] != 0 &&
           w.pages[(o + bytes - 1) >> kPageShift] != 0;
  }
  // Quick test of a row; false also when it merely spans too much.
  ALWAYS bool AllFit(const Warp& w, const Offset* a, Offset base, uint32_t size) {
    Offset low = a[0] + base;
    Offset high = low;
    Offset all = 0;
    for (uint32_t l = 0; l < kRow; ++l) {
      const Offset o = a[l] + base;
      low = o < low ? o : low;
      high = o > high ? o : high;
      all |= o;
    }
    return (all & (size - 1)) == 0 && (high - low) >> kPageShift == 0 && Fits(w, high, size) &&
           w.pages[low >> kPageShift] != 0;
  }
  ALWAYS uint64_t Address(Offset o) { return o + kArenaVa; }
  static constexpr const char* kLoad = "global load";
  static constexpr const char* kStore = "global store";
};
struct SharedRows {
  using Offset = uint32_t;
  ALWAYS Offset Base(const Inst* i) { return static_cast<uint32_t>(i->imm); }
  ALWAYS std::byte* Host(const Warp& w) { return w.shared; }
  ALWAYS bool Fits(const Warp& w, Offset o, uint32_t bytes) { return uint64_t{o} + bytes <= w.shared_bytes; }
  ALWAYS bool AllFit(const Warp& w, const Offset* a, Offset base, uint32_t size) {
    Offset high = 0;
    Offset all = 0;
    for (uint32_t l = 0; l < kRow; ++l) {
      const Offset o = a[l] + base;
      high = o > high ? o : high;
      all |= o;
    }
    return (all & (size - 1)) == 0 && Fits(w, high, size);
  }
  ALWAYS uint64_t Address(Offset o) { return o; }
  static constexpr const char* kLoad = "shared load";
  static constexpr const char* kStore = "shared store";
};

// False: a fault was raised, for the first lane that deserves one.
template <class Space>
ALWAYS bool CheckRow(Warp& w, const Inst* i, const typename Space::Offset* a, uint32_t row, uint32_t size,
                     const char* access) {
  const typename Space::Offset base = Space::Base(i);
  if (Space::AllFit(w, a, base, size)) return true;
  for (uint32_t l = 0; l < kRow; ++l) {
    const auto o = static_cast<typename Space::Offset>(a[l] + base);
    const bool fits = Space::Fits(w, o, size);
    if (fits && (o & (size - 1)) == 0) continue;
    RaiseAddressFault(w, i, fits ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, row + l, Space::Address(o),
                      size, access);
    return false;
  }
  return true;
}

// Rows that are neither a stretch nor one place. False: a fault was raised.
template <class Space, class M, class S>
[[gnu::noinline]] static bool LoadMixedRow(Warp& w, const Inst* i, uint32_t row) {
  using Offset = typename Space::Offset;
  const Offset* a = In<Offset>(w, i, 0) + row;
  S* d = Out<S>(w, i, 1) + row;
  if (!CheckRow<Space>(w, i, a, row, sizeof(M), Space::kLoad)) return false;
  const std::byte* host = Space::Host(w);
  const Offset base = Space::Base(i);
#if defined(__AVX512F__)
  if constexpr (sizeof(M) == 4 && sizeof(S) == 4 && sizeof(Offset) == 4) {
    const __m512i o = _mm512_add_epi32(_mm512_load_si512(a), _mm512_set1_epi32(static_cast<int>(base)));
    _mm512_store_si512(d, _mm512_i32gather_epi32(o, host, 1));
    return true;
  }
  if constexpr (sizeof(M) == 4 && sizeof(S) == 4 && sizeof(Offset) == 8) {
    const __m512i b = _mm512_set1_epi64(static_cast<long long>(base));
    const __m256i low = _mm512_i64gather_epi32(_mm512_add_epi64(_mm512_load_si512(a), b), host, 1);
    const __m256i high = _mm512_i64gather_epi32(_mm512_add_epi64(_mm512_load_si512(a + 8), b), host, 1);
    _mm512_store_si512(d, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    return true;
  }
#endif
  for (uint32_t l = 0; l < kRow; ++l)
    d[l] = static_cast<S>(*reinterpret_cast<const M*>(host + static_cast<Offset>(a[l] + base)));
  return true;
}
template <class Space, class M, class S>
[[gnu::noinline]] static bool StoreMixedRow(Warp& w, const Inst* i, uint32_t row) {
  using Offset = typename Space::Offset;
  const Offset* a = In<Offset>(w, i, 0) + row;
  const S* s = In<S>(w, i, 1) + row;
  if (!CheckRow<Space>(w, i, a, row, sizeof(M), Space::kStore)) return false;
  std::byte* host = Space::Host(w);
  for (uint32_t l = 0; l < kRow; ++l)
    *reinterpret_cast<M*>(host + static_cast<Offset>(a[l] + Space::Base(i))) = static_cast<M>(s[l]);
  return true;
}

// Full warps only. A row is written before the next one is looked at: its slots may be those of its addresses.
template <class Space, class M, class S>
ALWAYS bool LoadRows(Warp& w, const Inst* i) {
  using Offset = typename Space::Offset;
  constexpr auto kSize = static_cast<uint32_t>(sizeof(M));
  const Offset* addresses = In<Offset>(w, i, 0);
  S* out = Out<S>(w, i, 1);
  const Offset base = Space::Base(i);
  std::byte* host = Space::Host(w);
  for (uint32_t row = 0; row < kLanes; row += kRow) {
    const Offset* a = addresses + row;
    S* d = out + row;
    const auto first = static_cast<Offset>(a[0] + base);
    const Pattern pattern = PatternOf<kSize>(a);
    const bool aligned = (first & (kSize - 1)) == 0;
    if (pattern == Pattern::kStretch && aligned && Space::Fits(w, first, kSize * kRow)) {
      const auto* p = reinterpret_cast<const M*>(host + first);
#pragma GCC ivdep
      for (uint32_t l = 0; l < kRow; ++l) d[l] = static_cast<S>(p[l]);
    } else if (pattern == Pattern::kSame && aligned && Space::Fits(w, first, kSize)) {
      Splat(d, static_cast<S>(*reinterpret_cast<const M*>(host + first)));
    } else if (!LoadMixedRow<Space, M, S>(w, i, row)) {
      return false;
    }
  }
  return true;
}
// Lanes in ascending order: the last one wins where they meet.
template <class Space, class M, class S>
ALWAYS bool StoreRows(Warp& w, const Inst* i) {
  using Offset = typename Space::Offset;
  constexpr auto kSize = static_cast<uint32_t>(sizeof(M));
  const Offset* addresses = In<Offset>(w, i, 0);
  const S* in = In<S>(w, i, 1);
  const Offset base = Space::Base(i);
  std::byte* host = Space::Host(w);
  for (uint32_t row = 0; row < kLanes; row += kRow) {
    const Offset* a = addresses + row;
    const S* s = in + row;
    const auto first = static_cast<Offset>(a[0] + base);
    if ((first & (kSize - 1)) == 0 && PatternOf<kSize>(a) == Pattern::kStretch && Space::Fits(w, first, kSize * kRow)) {
      auto* p = reinterpret_cast<M*>(host + first);
#pragma GCC ivdep
      for (uint32_t l = 0; l < kRow; ++l) p[l] = static_cast<M>(s[l]);
    } else if (!StoreMixedRow<Space, M, S>(w, i, row)) {
      return false;
    }
  }
  return true;
}

}  // namespace vgpud::soft::VGPUD_ISA
