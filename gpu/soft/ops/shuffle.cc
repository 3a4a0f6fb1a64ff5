// SPDX-License-Identifier: Apache-2.0
// shfl.sync (PTX ISA "Data Movement and Conversion: shfl.sync").
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// d[l] = a[from[l]], from[l] < 32.
ALWAYS void Permute(uint32_t* d, const uint32_t* a, const uint32_t* from) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_load_si512(a);
  const __m512i high = _mm512_load_si512(a + 16);
  _mm512_store_si512(d, _mm512_permutex2var_epi32(low, _mm512_load_si512(from), high));
  _mm512_store_si512(d + 16, _mm512_permutex2var_epi32(low, _mm512_load_si512(from + 16), high));
#else
  for (uint32_t l = 0; l < kLanes; ++l) d[l] = a[from[l]];
#endif
}

enum ShflMode { kUp, kDown, kBfly, kIdx };

// d|p, a, b, c, membermask: operands 0|1, 2, 3, 4, 5.
template <ShflMode kMode>
const Inst* Shfl(Warp& w, const Inst* i) {
  if (!Gathered(w, i, 5)) return i;
  const uint32_t* a = In<uint32_t>(w, i, 2);
  const uint32_t* b = In<uint32_t>(w, i, 3);
  const uint32_t* c = In<uint32_t>(w, i, 4);
  const uint32_t mask = w.mask;
  alignas(64) uint32_t source[kLanes];
  alignas(64) uint32_t inside[kLanes];
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint32_t clamp = c[l] & 31;
    const uint32_t segment = (c[l] >> 8) & 31;
    const uint32_t last = (l & segment) | (clamp & ~segment);
    const uint32_t by = b[l] & 31;
    uint32_t from;
    bool in;
    if constexpr (kMode == kUp) {
      from = l - by;
      in = static_cast<int32_t>(from) >= static_cast<int32_t>(last);
    } else if constexpr (kMode == kDown) {
      from = l + by;
      in = from <= last;
    } else if constexpr (kMode == kBfly) {
      from = l ^ by;
      in = from <= last;
    } else {
      from = (l & segment) | (by & ~segment);
      in = from <= last;
    }
    // Outside of the segment: the own value.
    source[l] = in ? from & 31 : l;
    inside[l] = in ? ~0u : 0u;
  }
  const uint32_t ok = SignBits(inside);
  alignas(64) uint32_t t[kLanes];
  if (mask == kFullMask) {
    Permute(t, a, source);
  } else {
    // A lane that does not take part (exited, elsewhere, or never there because the block is smaller) gives 0: sums
    // over a whole warp of which only some lanes are active are common.
    for (uint32_t l = 0; l < kLanes; ++l) t[l] = (mask >> source[l]) & 1 ? a[source[l]] : 0;
  }
  StoreMasked(Out<uint32_t>(w, i, 0), t, mask);
  WritePred(Pred(w, i, 1), ok, mask);
  return i + 1;
}

}  // namespace

OpRows ShuffleRows() {
  static const OpRow kRows[] = {
      {"shfl.sync.up.b32", Shfl<kUp>, "eaaaa", kDiverts},
      {"shfl.sync.down.b32", Shfl<kDown>, "eaaaa", kDiverts},
      {"shfl.sync.bfly.b32", Shfl<kBfly>, "eaaaa", kDiverts},
      {"shfl.sync.idx.b32", Shfl<kIdx>, "eaaaa", kDiverts},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
