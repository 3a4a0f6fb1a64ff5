// ld and st (PTX ISA "Data Movement"). Operands: address, then values (st) or values, then address (ld): the address is
// always operand 0, values follow. imm is added to the address; aux = number of vector elements.
#include "gpu/soft/ops_address.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// From mem type M in memory to a slot of S.
template <class M, class S>
ALWAYS S Extend(M v) {
  return static_cast<S>(v);
}

template <class M, class S>
ALWAYS void LoadContiguous(const Warp& w, const Inst* i, const std::byte* at) {
  const uint32_t n = i->aux;
  for (uint32_t e = 0; e < n; ++e) {
    S* d = Out<S>(w, i, static_cast<int>(1 + e));
    const M* p = reinterpret_cast<const M*>(at) + e;
    if (w.mask == kFullMask) {
      if (n == 1) {
#pragma GCC ivdep
        for (uint32_t l = 0; l < kLanes; ++l) d[l] = Extend<M, S>(p[l]);
      } else {
        for (uint32_t l = 0; l < kLanes; ++l) d[l] = Extend<M, S>(p[l * n]);
      }
    } else {
      for (uint32_t m = w.mask; m != 0; m &= m - 1) {
        const auto l = static_cast<uint32_t>(__builtin_ctz(m));
        d[l] = Extend<M, S>(p[l * n]);
      }
    }
  }
}
template <class M, class S, class At>
ALWAYS void LoadEach(const Warp& w, const Inst* i, At at) {
  const uint32_t n = i->aux;
  for (uint32_t e = 0; e < n; ++e) {
    S* d = Out<S>(w, i, static_cast<int>(1 + e));
    for (uint32_t m = w.mask; m != 0; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      M v;
      __builtin_memcpy(&v, at(l) + e * sizeof(M), sizeof(M));
      d[l] = Extend<M, S>(v);
    }
  }
}
// All lanes, one element each, eight at a time: blocks of 8x8 or 16x16 threads read rows, and rows are what is found.
template <class M, class S, class O>
ALWAYS void LoadGroups(const Warp& w, const Inst* i, const std::byte* base, const O* offset) {
  constexpr uint32_t kGroup = 8;
  S* d = Out<S>(w, i, 1);
  for (uint32_t g = 0; g < kLanes; g += kGroup) {
    const O first = offset[g];
    O varies = 0;
    O uneven = 0;
    for (uint32_t l = 0; l < kGroup; ++l) {
      const auto distance = static_cast<O>(offset[g + l] - first);
      varies |= distance;
      uneven |= distance ^ static_cast<O>(sizeof(M) * l);
    }
    const auto* p = reinterpret_cast<const M*>(base + first);
    if (varies == 0) {
      const S v = Extend<M, S>(*p);
      for (uint32_t l = 0; l < kGroup; ++l) d[g + l] = v;
    } else if (uneven == 0) {
#pragma GCC ivdep
      for (uint32_t l = 0; l < kGroup; ++l) d[g + l] = Extend<M, S>(p[l]);
    } else {
      for (uint32_t l = 0; l < kGroup; ++l) d[g + l] = Extend<M, S>(*reinterpret_cast<const M*>(base + offset[g + l]));
    }
  }
}

template <class M, class S>
ALWAYS void StoreContiguous(const Warp& w, const Inst* i, std::byte* at) {
  const uint32_t n = i->aux;
  for (uint32_t e = 0; e < n; ++e) {
    const S* s = In<S>(w, i, static_cast<int>(1 + e));
    M* p = reinterpret_cast<M*>(at) + e;
    if (w.mask == kFullMask && n == 1) {
#pragma GCC ivdep
      for (uint32_t l = 0; l < kLanes; ++l) p[l] = static_cast<M>(s[l]);
    } else {
      for (uint32_t m = w.mask; m != 0; m &= m - 1) {
        const auto l = static_cast<uint32_t>(__builtin_ctz(m));
        p[l * n] = static_cast<M>(s[l]);
      }
    }
  }
}
template <class M, class S, class At>
ALWAYS void StoreEach(const Warp& w, const Inst* i, At at) {
  const uint32_t n = i->aux;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    std::byte* to = at(l);
    for (uint32_t e = 0; e < n; ++e) {
      const auto v = static_cast<M>(In<S>(w, i, static_cast<int>(1 + e))[l]);
      __builtin_memcpy(to + e * sizeof(M), &v, sizeof(M));
    }
  }
}

ALWAYS void AfterAccess(Warp& w, const Inst* i) {
  if (i->flags & kSync) NoteSync(w);
}

template <class M, class S, bool kStore>
const Inst* Global(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  alignas(64) uint64_t offset[kLanes];
  const Reach reach = ReachGlobal(w, i, In<uint64_t>(w, i, 0), size, offset, kStore ? "global store" : "global load");
  if (reach == Reach::kFault) return i;
  if (reach == Reach::kContiguous) {
    std::byte* at = w.arena + offset[0];
    if constexpr (kStore) {
      StoreContiguous<M, S>(w, i, at);
    } else {
      LoadContiguous<M, S>(w, i, at);
    }
  } else if (!kStore && w.mask == kFullMask && i->aux == 1) {
    LoadGroups<M, S>(w, i, w.arena, offset);
  } else {
    const auto at = [&](uint32_t l) { return w.arena + offset[l]; };
    if constexpr (kStore) {
      StoreEach<M, S>(w, i, at);
    } else {
      LoadEach<M, S>(w, i, at);
    }
  }
  AfterAccess(w, i);
  return i + 1;
}

template <class M, class S, bool kStore>
const Inst* Shared(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  alignas(64) uint32_t offset[kLanes];
  const Reach reach = ReachShared(w, i, size, offset, kStore ? "shared store" : "shared load");
  if (reach == Reach::kFault) return i;
  if (reach == Reach::kContiguous) {
    if constexpr (kStore) {
      StoreContiguous<M, S>(w, i, w.shared + offset[0]);
    } else {
      LoadContiguous<M, S>(w, i, w.shared + offset[0]);
    }
  } else if (!kStore && reach == Reach::kUniform && i->aux == 1) {
    M v;
    __builtin_memcpy(&v, w.shared + offset[0], sizeof(M));
    const S s = Extend<M, S>(v);
    Map<S>(w, i, 1, [&](uint32_t) { return s; });
  } else if (!kStore && w.mask == kFullMask && i->aux == 1) {
    LoadGroups<M, S>(w, i, w.shared, offset);
  } else {
    const auto at = [&](uint32_t l) { return w.shared + offset[l]; };
    if constexpr (kStore) {
      StoreEach<M, S>(w, i, at);
    } else {
      LoadEach<M, S>(w, i, at);
    }
  }
  AfterAccess(w, i);
  return i + 1;
}

// Any space, lane by lane: generic and local addresses.
template <class M, class S, bool kStore, MemSpace kSpace>
const Inst* Anywhere(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  std::byte* at[kLanes];
  if (!ReachAny(w, i, kSpace, size, at, kStore)) return i;
  const auto lane = [&](uint32_t l) { return at[l]; };
  if constexpr (kStore) {
    StoreEach<M, S>(w, i, lane);
  } else {
    LoadEach<M, S>(w, i, lane);
  }
  AfterAccess(w, i);
  return i + 1;
}

}  // namespace

OpRows MemoryRows() {
// "@ld.<space>.<memory type>.<slot bits>"
#define ACCESS(type, M, bits, S)                                                                                  \
  {"@ld.global." type "." bits, Global<M, S, false>, ""}, {"@ld.shared." type "." bits, Shared<M, S, false>, ""}, \
      {"@ld.local." type "." bits, Anywhere<M, S, false, MemSpace::kLocal>, ""},                                  \
      {"@ld.param." type "." bits, Anywhere<M, S, false, MemSpace::kParamRegister>, ""}, {                        \
    "@ld.generic." type "." bits, Anywhere<M, S, false, MemSpace::kGeneric>, ""                                   \
  }
#define STORE(type, M, bits, S)                                                                                 \
  {"@st.global." type "." bits, Global<M, S, true>, ""}, {"@st.shared." type "." bits, Shared<M, S, true>, ""}, \
      {"@st.local." type "." bits, Anywhere<M, S, true, MemSpace::kLocal>, ""}, {                               \
    "@st.generic." type "." bits, Anywhere<M, S, true, MemSpace::kGeneric>, ""                                  \
  }
  static const OpRow kRows[] = {
      ACCESS("u8", uint8_t, "32", uint32_t),   ACCESS("s8", int8_t, "32", uint32_t),
      ACCESS("u16", uint16_t, "32", uint32_t), ACCESS("s16", int16_t, "32", uint32_t),
      ACCESS("u32", uint32_t, "32", uint32_t), ACCESS("u8", uint8_t, "64", uint64_t),
      ACCESS("s8", int8_t, "64", uint64_t),    ACCESS("u16", uint16_t, "64", uint64_t),
      ACCESS("s16", int16_t, "64", uint64_t),  ACCESS("u32", uint32_t, "64", uint64_t),
      ACCESS("s32", int32_t, "64", uint64_t),  ACCESS("u64", uint64_t, "64", uint64_t),
      STORE("u8", uint8_t, "32", uint32_t),    STORE("u16", uint16_t, "32", uint32_t),
      STORE("u32", uint32_t, "32", uint32_t),  STORE("u8", uint8_t, "64", uint64_t),
      STORE("u16", uint16_t, "64", uint64_t),  STORE("u32", uint32_t, "64", uint64_t),
      STORE("u64", uint64_t, "64", uint64_t),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
