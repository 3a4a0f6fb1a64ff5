// ld and st (PTX ISA "Data Movement"). Operands: address, then values (st) or values, then address (ld): the address is
// always operand 0, values follow. imm is added to the address; aux = number of vector elements.
#include "gpu/soft/ops_rows.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Lane by lane, with checked addresses.
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
  if (i->flags & kSync) NoteSync(w);
}

template <class Rows, class M, class S, bool kStore>
ALWAYS const Inst* AccessRows(Warp& w, const Inst* i) {
  bool done;
  if constexpr (kStore) {
    done = StoreRows<Rows, M, S>(w, i);
  } else {
    done = LoadRows<Rows, M, S>(w, i);
  }
  if (!done) return i;
  AfterAccess(w, i);
  return i + 1;
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

// Vectors and partial warps. Apart from the common case, which then needs no stack frame.
template <class M, class S, bool kStore>
[[gnu::noinline]] const Inst* GlobalEach(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  alignas(64) uint64_t offset[kLanes];
  if (!ReachGlobal(w, i, size, offset, kStore ? GlobalRows::kStore : GlobalRows::kLoad)) return i;
  return AccessEach<M, S, kStore>(w, i, [&](uint32_t l) { return w.arena + offset[l]; });
}
template <class M, class S, bool kStore>
const Inst* Global(Warp& w, const Inst* i) {
  if (w.mask == kFullMask && i->aux == 1) return AccessRows<GlobalRows, M, S, kStore>(w, i);
  return GlobalEach<M, S, kStore>(w, i);
}

template <class M, class S, bool kStore>
[[gnu::noinline]] const Inst* SharedEach(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  uint32_t offset[kLanes];
  if (!ReachShared(w, i, size, offset, kStore ? SharedRows::kStore : SharedRows::kLoad)) return i;
  return AccessEach<M, S, kStore>(w, i, [&](uint32_t l) { return w.shared + offset[l]; });
}
template <class M, class S, bool kStore>
const Inst* Shared(Warp& w, const Inst* i) {
  if (w.mask == kFullMask && i->aux == 1 && (i->flags & kAddress32)) return AccessRows<SharedRows, M, S, kStore>(w, i);
  return SharedEach<M, S, kStore>(w, i);
}

// Any space, lane by lane: generic and local addresses.
template <class M, class S, bool kStore, MemSpace kSpace>
const Inst* Anywhere(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  std::byte* at[kLanes];
  if (!ReachAny(w, i, kSpace, size, at, kStore)) return i;
  return AccessEach<M, S, kStore>(w, i, [&](uint32_t l) { return at[l]; });
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
