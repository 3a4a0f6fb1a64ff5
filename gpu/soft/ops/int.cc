// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic that vectorises (PTX ISA "Integer Arithmetic Instructions").
#include "gpu/soft/ops/int.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

OP2(Add, a + b)
OP2(Sub, a - b)
OP2(MulLo, a* b)
OP2(MulHi, static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> kBits<T>))
OP3(MadLo, a* b + c)
OP3(MadHi, static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> kBits<T>) + c)
OP2(Min, a < b ? a : b)
OP2(Max, a > b ? a : b)
OP1(Neg, -a)
OP1(Abs, a < 0 ? -a : a)

template <class T>
const Inst* MulWide(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  Map<Wide<T>>(w, i, 0, [&](uint32_t l) {
    return static_cast<Wide<T>>(static_cast<Wide<T>>(Value<T>(a[l])) * static_cast<Wide<T>>(Value<T>(b[l])));
  });
  return i + 1;
}
template <class T>
const Inst* MadWide(Warp& w, const Inst* i) {
  const Slot<T>* a = In<T>(w, i, 1);
  const Slot<T>* b = In<T>(w, i, 2);
  const Slot<Wide<T>>* c = In<Wide<T>>(w, i, 3);
  Map<Wide<T>>(w, i, 0, [&](uint32_t l) {
    return static_cast<Wide<T>>(static_cast<Wide<T>>(Value<T>(a[l])) * static_cast<Wide<T>>(Value<T>(b[l])) + c[l]);
  });
  return i + 1;
}

// Four products of bytes and c.
template <class A, class B>
const Inst* Dp4a(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = In<uint32_t>(w, i, 3);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = c[l];
    for (int k = 0; k < 32; k += 8)
      r += static_cast<uint32_t>(static_cast<int>(static_cast<A>(a[l] >> k)) *
                                 static_cast<int>(static_cast<B>(b[l] >> k)));
    return r;
  });
  return i + 1;
}

}  // namespace

OpRows IntegerRows() {
  static const OpRow kRows[] = {
      BOTH("add", BinaryOf<Add>::Run, "daa", "DAA"),
      BOTH("sub", BinaryOf<Sub>::Run, "daa", "DAA"),
      BOTH("mul.lo", BinaryOf<MulLo>::Run, "daa", "DAA"),
      BOTH("mul.hi", BinaryOf<MulHi>::Run, "daa", "DAA"),
      {"mul.wide.u16", MulWide<uint16_t>, "daa"},
      {"mul.wide.s16", MulWide<int16_t>, "daa"},
      {"mul.wide.u32", MulWide<uint32_t>, "Daa"},
      {"mul.wide.s32", MulWide<int32_t>, "Daa"},
      {"mad.wide.u16", MadWide<uint16_t>, "daaa"},
      {"mad.wide.s16", MadWide<int16_t>, "daaa"},
      {"mad.wide.u32", MadWide<uint32_t>, "DaaA"},
      {"mad.wide.s32", MadWide<int32_t>, "DaaA"},
      BOTH("mad.lo", TernaryOf<MadLo>::Run, "daaa", "DAAA"),
      BOTH("mad.hi", TernaryOf<MadHi>::Run, "daaa", "DAAA"),
      BOTH("min", BinaryOf<Min>::Run, "daa", "DAA"),
      BOTH("max", BinaryOf<Max>::Run, "daa", "DAA"),
      SIGNED3("neg", UnaryOf<Neg>::Run, "da", "da", "DA"),
      SIGNED3("abs", UnaryOf<Abs>::Run, "da", "da", "DA"),
      {"dp4a.u32.u32", Dp4a<uint8_t, uint8_t>, "daaa"},
      {"dp4a.s32.s32", Dp4a<int8_t, int8_t>, "daaa"},
      {"dp4a.u32.s32", Dp4a<uint8_t, int8_t>, "daaa"},
      {"dp4a.s32.u32", Dp4a<int8_t, uint8_t>, "daaa"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
