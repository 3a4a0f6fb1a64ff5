// SPDX-License-Identifier: Apache-2.0
// Conversions of bfloat16, tf32 and pairs of 16-bit values (PTX ISA "cvt").
#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

ALWAYS float Relu(float v) { return v <= 0 ? 0 : v; }
template <bool kToZero, bool kRelu>
const Inst* BfOfFloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    const auto v = Bits<float>(a[l]);
    return FloatToBfloat(kRelu ? Relu(v) : v, kToZero);
  });
  return i + 1;
}
// The first source goes into the upper half.
template <bool kHalf, bool kToZero, bool kRelu>
const Inst* PairOfFloats(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  if constexpr (kHalf && kToZero) {
    const auto one = [](uint32_t bits) -> uint32_t {
      const auto v = kRelu ? Relu(Bits<float>(bits)) : Bits<float>(bits);
      return FloatToHalf(static_cast<double>(v), Rounding::kZero);
    };
    Each<uint32_t>(w, i, 0, [&](uint32_t l) { return one(a[l]) << 16 | one(b[l]); });
  } else {
    const auto one = [](uint32_t bits) -> uint32_t {
      const auto v = kRelu ? Relu(Bits<float>(bits)) : Bits<float>(bits);
      return kHalf ? FloatToHalf(v) : FloatToBfloat(v, kToZero);
    };
    Map<uint32_t>(w, i, 0, [&](uint32_t l) { return one(a[l]) << 16 | one(b[l]); });
  }
  return i + 1;
}
const Inst* FloatOfBf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return (a[l] & 0xffff) << 16; });
  return i + 1;
}
// To the nearest, ties away from zero, on 10 bits of fraction.
const Inst* TfOfFloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) -> uint32_t {
    const uint32_t r = (a[l] & 0x7f800000u) == 0x7f800000u ? a[l] : (a[l] + 0x1000u) & ~0x1fffu;
    return (a[l] & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : r;
  });
  return i + 1;
}

}  // namespace

OpRows BfloatRows() {
#define PAIR_OF_FLOATS(type, kHalf)                                            \
  {"cvt." type ".f32", PairOfFloats<kHalf, false, false>, "daa"},              \
      {"cvt.rz." type ".f32", PairOfFloats<kHalf, true, false>, "daa"},        \
      {"cvt.rn.relu." type ".f32", PairOfFloats<kHalf, false, true>, "daa"}, { \
    "cvt.rz.relu." type ".f32", PairOfFloats<kHalf, true, true>, "daa"         \
  }
  static const OpRow kRows[] = {
      {"cvt.f32.bf16", FloatOfBf, "da"},
      {"cvt.bf16.f32", BfOfFloat<false, false>, "da"},
      {"cvt.rz.bf16.f32", BfOfFloat<true, false>, "da"},
      {"cvt.rn.relu.bf16.f32", BfOfFloat<false, true>, "da"},
      {"cvt.rz.relu.bf16.f32", BfOfFloat<true, true>, "da"},
      PAIR_OF_FLOATS("bf16x2", false),
      PAIR_OF_FLOATS("f16x2", true),
      {"cvt.rna.tf32.f32", TfOfFloat, "da"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
