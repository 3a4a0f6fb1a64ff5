// ld and st of local, parameter and generic memory; operands as in ops_memory.cc.
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
