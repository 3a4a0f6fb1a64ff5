// SPDX-License-Identifier: Apache-2.0
// The common cases of ops_rows.h in one go: both rows of a full warp lie alike, as stretches of memory or as one place
// each. Without a loop and without a call, so a handler needs no stack frame for it. Where rows are 16 lanes only.
#pragma once

#include "gpu/soft/ops/rows.h"

namespace vgpud::soft::VGPUD_ISA {

#if defined(__AVX512F__)

inline constexpr bool kHasRowPairs = true;

template <uint32_t kStep>
ALWAYS Pattern PatternOfPair(const uint32_t* a) {
  const __m512i steps = _mm512_load_si512(kSteps<uint32_t, kStep>.at);
  const __m512i d0 = _mm512_sub_epi32(_mm512_load_si512(a), _mm512_set1_epi32(static_cast<int>(a[0])));
  const __m512i d1 = _mm512_sub_epi32(_mm512_load_si512(a + kRow), _mm512_set1_epi32(static_cast<int>(a[kRow])));
  const __m512i uneven = _mm512_or_si512(_mm512_xor_si512(d0, steps), _mm512_xor_si512(d1, steps));
  if (_mm512_test_epi32_mask(uneven, uneven) == 0) return Pattern::kStretch;
  const __m512i varies = _mm512_or_si512(d0, d1);
  return _mm512_test_epi32_mask(varies, varies) == 0 ? Pattern::kSame : Pattern::kMixed;
}
template <uint32_t kStep>
ALWAYS Pattern PatternOfPair(const uint64_t* a) {
  const __m512i low = _mm512_load_si512(kSteps<uint64_t, kStep>.at);
  const __m512i high = _mm512_load_si512(kSteps<uint64_t, kStep>.at + 8);
  const __m512i first0 = _mm512_set1_epi64(static_cast<long long>(a[0]));
  const __m512i first1 = _mm512_set1_epi64(static_cast<long long>(a[kRow]));
  const __m512i d0 = _mm512_sub_epi64(_mm512_load_si512(a), first0);
  const __m512i d1 = _mm512_sub_epi64(_mm512_load_si512(a + 8), first0);
  const __m512i d2 = _mm512_sub_epi64(_mm512_load_si512(a + kRow), first1);
  const __m512i d3 = _mm512_sub_epi64(_mm512_load_si512(a + kRow + 8), first1);
  const __m512i uneven = _mm512_or_si512(_mm512_or_si512(_mm512_xor_si512(d0, low), _mm512_xor_si512(d1, high)),
                                         _mm512_or_si512(_mm512_xor_si512(d2, low), _mm512_xor_si512(d3, high)));
  if (_mm512_test_epi64_mask(uneven, uneven) == 0) return Pattern::kStretch;
  const __m512i varies = _mm512_or_si512(_mm512_or_si512(d0, d1), _mm512_or_si512(d2, d3));
  return _mm512_test_epi64_mask(varies, varies) == 0 ? Pattern::kSame : Pattern::kMixed;
}

// Are both rows there, `bytes` from first[0] and first[1] on, aligned to `size`?
template <class Space>
ALWAYS bool PairFits(const Warp& w, typename Space::Offset first, typename Space::Offset second, uint32_t size,
                     uint32_t bytes) {
  return ((first | second) & (size - 1)) == 0 && Space::Fits(w, first, bytes) && Space::Fits(w, second, bytes);
}

// False: nothing has been done, it is no common case.
template <class Space, class M, class S>
ALWAYS bool LoadPair(const Warp& w, const Inst* i) {
  using Offset = typename Space::Offset;
  constexpr auto kSize = static_cast<uint32_t>(sizeof(M));
  const Offset* a = In<Offset>(w, i, 0);
  S* out = Out<S>(w, i, 1);
  const Offset base = Space::Base(i);
  const std::byte* host = Space::Host(w);
  const auto first = static_cast<Offset>(a[0] + base);
  const auto second = static_cast<Offset>(a[kRow] + base);
  const Pattern pattern = PatternOfPair<kSize>(a);
  if (pattern == Pattern::kStretch && PairFits<Space>(w, first, second, kSize, kSize * kRow)) {
    const auto* p = reinterpret_cast<const M*>(host + first);
    const auto* q = reinterpret_cast<const M*>(host + second);
#pragma GCC ivdep
    for (uint32_t l = 0; l < kRow; ++l) out[l] = static_cast<S>(p[l]);
#pragma GCC ivdep
    for (uint32_t l = 0; l < kRow; ++l) out[kRow + l] = static_cast<S>(q[l]);
    return true;
  }
  if (pattern == Pattern::kSame && PairFits<Space>(w, first, second, kSize, kSize)) {
    Splat(out, static_cast<S>(*reinterpret_cast<const M*>(host + first)));
    Splat(out + kRow, static_cast<S>(*reinterpret_cast<const M*>(host + second)));
    return true;
  }
  return false;
}
template <class Space, class M, class S>
ALWAYS bool StorePair(const Warp& w, const Inst* i) {
  using Offset = typename Space::Offset;
  constexpr auto kSize = static_cast<uint32_t>(sizeof(M));
  const Offset* a = In<Offset>(w, i, 0);
  const S* in = In<S>(w, i, 1);
  const Offset base = Space::Base(i);
  std::byte* host = Space::Host(w);
  const auto first = static_cast<Offset>(a[0] + base);
  const auto second = static_cast<Offset>(a[kRow] + base);
  if (PatternOfPair<kSize>(a) != Pattern::kStretch || !PairFits<Space>(w, first, second, kSize, kSize * kRow))
    return false;
  auto* p = reinterpret_cast<M*>(host + first);
  auto* q = reinterpret_cast<M*>(host + second);
#pragma GCC ivdep
  for (uint32_t l = 0; l < kRow; ++l) p[l] = static_cast<M>(in[l]);
#pragma GCC ivdep
  for (uint32_t l = 0; l < kRow; ++l) q[l] = static_cast<M>(in[kRow + l]);
  return true;
}

#else

inline constexpr bool kHasRowPairs = false;
template <class Space, class M, class S>
ALWAYS bool LoadPair(const Warp&, const Inst*) {
  return false;
}
template <class Space, class M, class S>
ALWAYS bool StorePair(const Warp&, const Inst*) {
  return false;
}

#endif

}  // namespace vgpud::soft::VGPUD_ISA
