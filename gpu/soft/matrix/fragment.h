// SPDX-License-Identifier: Apache-2.0
// Elements and registers of matrix fragments (wmma, mma).
#pragma once

#include "gpu/soft/number/half.h"
#include "gpu/soft/ops/address.h"

namespace vgpud::soft::VGPUD_ISA {

// Elements as they lie in memory and in registers, and what they are multiplied as.
struct F16 {
  using Memory = uint16_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return HalfToFloat(v); }
  ALWAYS Memory Put(Math v) { return static_cast<Memory>(FloatToHalf(v)); }
};
struct Bf16 {
  using Memory = uint16_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return Bits<float>(v << 16); }
};
struct Tf32 {
  using Memory = uint32_t;
  using Reg = uint32_t;
  using Math = float;
  // The low 13 bits do not take part.
  ALWAYS Math Get(uint32_t v) { return Bits<float>(v & ~0x1fffu); }
};
struct F32 {
  using Memory = uint32_t;
  using Reg = uint32_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return Bits<float>(v); }
  ALWAYS Memory Put(Math v) { return Bits<uint32_t>(Canonical(v)); }
};
struct S8 {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = int32_t;
  ALWAYS Math Get(uint32_t v) { return static_cast<int8_t>(v); }
};
struct U8 {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = int32_t;
  ALWAYS Math Get(uint32_t v) { return static_cast<int32_t>(v); }
};
// Four bits each.
struct S4 {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = int32_t;
  ALWAYS Math Get(uint32_t v) { return static_cast<int8_t>(v << 4) >> 4; }
};
struct U4 {
  using Memory = uint8_t;
  using Reg = uint32_t;
  using Math = int32_t;
  ALWAYS Math Get(uint32_t v) { return static_cast<int32_t>(v & 15); }
};
struct S32 {
  using Memory = uint32_t;
  using Reg = uint32_t;
  using Math = int32_t;
  ALWAYS Math Get(uint32_t v) { return static_cast<int32_t>(v); }
  ALWAYS Memory Put(Math v) { return static_cast<uint32_t>(v); }
};
struct F64 {
  using Memory = uint64_t;
  using Reg = uint64_t;
  using Math = double;
  ALWAYS Math Get(uint64_t v) { return Bits<double>(v); }
  ALWAYS Memory Put(Math v) { return Bits<uint64_t>(v); }
};

template <class E>
inline constexpr uint32_t kElementBits = 8 * sizeof(typename E::Memory);
template <>
inline constexpr uint32_t kElementBits<S4> = 4;
template <>
inline constexpr uint32_t kElementBits<U4> = 4;
template <class E>
inline constexpr uint32_t kPerRegister = 8 * sizeof(typename E::Reg) / kElementBits<E>;
// Element number `part` of a register.
template <class E>
ALWAYS typename E::Math ElementOf(typename E::Reg reg, uint32_t part) {
  return E::Get(static_cast<typename E::Memory>(reg >> (kElementBits<E> * part)));
}

template <class E>
ALWAYS typename E::Reg* Fragment(const Warp& w, const Inst* i, uint32_t index) {
  const ExtraOperand& o = w.extra[i->offset[kExtraOperand] + index];
  return reinterpret_cast<typename E::Reg*>(w.base[o.base] + o.offset);
}

// The address that a lane has in operand 0.
ALWAYS uint64_t LaneOperandAddress(const Warp& w, const Inst* i, uint32_t lane) {
  return i->flags & kAddress32 ? static_cast<uint32_t>(In<uint32_t>(w, i, 0)[lane] + static_cast<uint32_t>(i->imm))
                               : In<uint64_t>(w, i, 0)[lane] + static_cast<uint64_t>(i->imm);
}

// All lanes that there are take part: false = some are still to come.
ALWAYS bool WholeWarp(Warp& w, const Inst* i) {
  if (w.mask == w.live) {
    w.force_sync = false;
    return true;
  }
  return WarpSyncReady(w, i, w.live);
}

}  // namespace vgpud::soft::VGPUD_ISA
