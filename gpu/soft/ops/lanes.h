// SPDX-License-Identifier: Apache-2.0
// Loads and stores lane by lane, with checked addresses: at(l) is where lane l goes. aux = number of vector elements.
#pragma once

#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {

// Vectors of a whole warp: the elements of a lane together.
template <class M, class S, uint32_t kElements, class At>
ALWAYS void LoadVectors(const Warp& w, const Inst* i, At at) {
  S* d[kElements];
  for (uint32_t e = 0; e < kElements; ++e) d[e] = Out<S>(w, i, static_cast<int>(1 + e));
  for (uint32_t l = 0; l < kLanes; ++l) {
    const auto* from = reinterpret_cast<const M*>(at(l));
    for (uint32_t e = 0; e < kElements; ++e) d[e][l] = static_cast<S>(from[e]);
  }
}
template <class M, class S, uint32_t kElements, class At>
ALWAYS void StoreVectors(const Warp& w, const Inst* i, At at) {
  const S* s[kElements];
  for (uint32_t e = 0; e < kElements; ++e) s[e] = In<S>(w, i, static_cast<int>(1 + e));
  for (uint32_t l = 0; l < kLanes; ++l) {
    auto* to = reinterpret_cast<M*>(at(l));
    for (uint32_t e = 0; e < kElements; ++e) to[e] = static_cast<M>(s[e][l]);
  }
}

template <class M, class S, class At>
ALWAYS void LoadEach(const Warp& w, const Inst* i, At at) {
  const uint32_t n = i->aux;
  for (uint32_t e = 0; e < n; ++e) {
    S* d = Out<S>(w, i, static_cast<int>(1 + e));
    for (uint32_t m = w.mask; m != 0; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      d[l] = static_cast<S>(*reinterpret_cast<const M*>(at(l) + e * sizeof(M)));
    }
  }
}
template <class M, class S, class At>
ALWAYS void StoreEach(const Warp& w, const Inst* i, At at) {
  const uint32_t n = i->aux;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    std::byte* to = at(l);
    for (uint32_t e = 0; e < n; ++e)
      *reinterpret_cast<M*>(to + e * sizeof(M)) = static_cast<M>(In<S>(w, i, static_cast<int>(1 + e))[l]);
  }
}

ALWAYS void AfterAccess(Warp& w, const Inst* i) {
  if (i->flags & kSync) NoteSync(w, i);
}

template <class M, class S, bool kStore, class At>
ALWAYS const Inst* AccessEach(Warp& w, const Inst* i, At at) {
  if constexpr (kStore) {
    if (sizeof(M) >= 4 && w.mask == kFullMask && i->aux == 4) {
      StoreVectors<M, S, 4>(w, i, at);
    } else if (sizeof(M) >= 4 && w.mask == kFullMask && i->aux == 2) {
      StoreVectors<M, S, 2>(w, i, at);
    } else if (w.mask == kFullMask && i->aux == 1) {
      StoreVectors<M, S, 1>(w, i, at);
    } else {
      StoreEach<M, S>(w, i, at);
    }
  } else {
    if (sizeof(M) >= 4 && w.mask == kFullMask && i->aux == 4) {
      LoadVectors<M, S, 4>(w, i, at);
    } else if (sizeof(M) >= 4 && w.mask == kFullMask && i->aux == 2) {
      LoadVectors<M, S, 2>(w, i, at);
    } else if (w.mask == kFullMask && i->aux == 1) {
      LoadVectors<M, S, 1>(w, i, at);
    } else {
      LoadEach<M, S>(w, i, at);
    }
  }
  AfterAccess(w, i);
  return i + 1;
}

}  // namespace vgpud::soft::VGPUD_ISA
