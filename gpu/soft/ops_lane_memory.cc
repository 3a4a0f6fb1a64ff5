// ld and st of local, parameter and generic memory; operands as in ops_memory.cc.
#include "gpu/soft/memory_types.h"
#include "gpu/soft/ops_lanes.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Any space, lane by lane: generic and local addresses.
template <class M, class S, bool kStore, MemSpace kSpace>
const Inst* Anywhere(Warp& w, const Inst* i) {
  const auto size = static_cast<uint32_t>(sizeof(M)) * i->aux;
  std::byte* at[kLanes];
  if (!ReachAny(w, i, kSpace, size, at, kStore)) return i;
  return AccessEach<M, S, kStore>(w, i, [&](uint32_t l) { return at[l]; });
}

}  // namespace

OpRows LaneMemoryRows() {
// "@ld.<space>.<memory type>.<slot bits>"
#define ACCESS(type, M, bits, S)                                                           \
  {"@ld.local." type "." bits, Anywhere<M, S, false, MemSpace::kLocal>, ""},               \
      {"@ld.param." type "." bits, Anywhere<M, S, false, MemSpace::kParamRegister>, ""}, { \
    "@ld.generic." type "." bits, Anywhere<M, S, false, MemSpace::kGeneric>, ""            \
  }
#define STORE(type, M, bits, S)                                                \
  {"@st.local." type "." bits, Anywhere<M, S, true, MemSpace::kLocal>, ""}, {  \
    "@st.generic." type "." bits, Anywhere<M, S, true, MemSpace::kGeneric>, "" \
  }
  static const OpRow kRows[] = {
      MEMORY_TYPE_ROWS(ACCESS, STORE),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
