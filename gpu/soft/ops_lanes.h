// Loads and stores lane by lane, with checked addresses: at(l) is where lane l goes. aux = number of vector elements.
#pragma once

#include "gpu/soft/ops_address.h"

namespace vgpud::soft::VGPUD_ISA {

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
    StoreEach<M, S>(w, i, at);
  } else {
    LoadEach<M, S>(w, i, at);
  }
  AfterAccess(w, i);
  return i + 1;
}

}  // namespace vgpud::soft::VGPUD_ISA
