// SPDX-License-Identifier: Apache-2.0
// ld and st (PTX ISA "Data Movement"). Operands: address, then values (st) or values, then
// address (ld): the address is always operand 0, values follow. imm is added to the address; aux = number of vector
// elements.
#include "gpu/soft/ops/lanes.h"
#include "gpu/soft/ops/memory_types.h"
#include "gpu/soft/ops/row_pairs.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

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
template <class Rows, class M, class S, bool kStore>
[[gnu::noinline]] const Inst* AccessRowByRow(Warp& w, const Inst* i) {
  return AccessRows<Rows, M, S, kStore>(w, i);
}
// A whole warp, one element per lane.
template <class Rows, class M, class S, bool kStore>
ALWAYS const Inst* AccessWhole(Warp& w, const Inst* i) {
  if constexpr (!kHasRowPairs) return AccessRows<Rows, M, S, kStore>(w, i);
  bool done;
  if constexpr (kStore) {
    done = StorePair<Rows, M, S>(w, i);
  } else {
    done = LoadPair<Rows, M, S>(w, i);
  }
  if (!done) return AccessRowByRow<Rows, M, S, kStore>(w, i);
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
  if (w.mask == kFullMask && i->aux == 1) return AccessWhole<GlobalRows, M, S, kStore>(w, i);
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
  if (w.mask == kFullMask && i->aux == 1 && (i->flags & kAddress32)) return AccessWhole<SharedRows, M, S, kStore>(w, i);
  return SharedEach<M, S, kStore>(w, i);
}

template <class M, class S, bool kStore>
const Inst* Local(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  alignas(64) uint32_t offset[kLanes];
  if (!ReachLocal(w, i, size, offset, kStore)) return i;
  return AccessEach<M, S, kStore>(w, i, [&](uint32_t l) { return w.local_memory + offset[l]; });
}

template <class M, class S, bool kStore, MemSpace kSpace>
[[gnu::noinline]] const Inst* Anywhere(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  std::byte* at[kLanes];
  if (!ReachAny(w, i, kSpace, size, at, kStore)) return i;
  return AccessEach<M, S, kStore>(w, i, [&](uint32_t l) { return at[l]; });
}
// Where pointers come out of memory, the compiler does not know the space; it is global nearly always.
template <class M, class S, bool kStore>
const Inst* Generic(Warp& w, const Inst* i) {
  return AllGlobal(w, i) ? Global<M, S, kStore>(w, i) : Anywhere<M, S, kStore, MemSpace::kGeneric>(w, i);
}

}  // namespace

OpRows MemoryRows() {
// "@ld.<space>.<memory type>.<slot bits>"
#define ACCESS(type, M, bits, S)                                                                                  \
  {"@ld.global." type "." bits, Global<M, S, false>, ""}, {"@ld.shared." type "." bits, Shared<M, S, false>, ""}, \
      {"@ld.local." type "." bits, Local<M, S, false>, ""},                                                       \
      {"@ld.param." type "." bits, Anywhere<M, S, false, MemSpace::kParamRegister>, ""}, {                        \
    "@ld.generic." type "." bits, Generic<M, S, false>, ""                                                        \
  }
#define STORE(type, M, bits, S)                                                                                 \
  {"@st.global." type "." bits, Global<M, S, true>, ""}, {"@st.shared." type "." bits, Shared<M, S, true>, ""}, \
      {"@st.local." type "." bits, Local<M, S, true>, ""}, {                                                    \
    "@st.generic." type "." bits, Generic<M, S, true>, ""                                                       \
  }
  static const OpRow kRows[] = {
      MEMORY_TYPE_ROWS(ACCESS, STORE),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
