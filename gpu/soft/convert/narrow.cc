// SPDX-License-Identifier: Apache-2.0
// cvt between pairs of f32, f16 or bf16 and pairs of values of eight bits and less (PTX ISA "cvt").
#include "gpu/soft/number/narrow.h"

#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// The values of a pair of 16 bits each.
struct HalfPair {
  ALWAYS float Get(uint32_t v) { return HalfToFloat(v & 0xffffu); }
  ALWAYS uint32_t Put(float v) { return FloatToHalf(v); }
};
struct BfloatPair {
  ALWAYS float Get(uint32_t v) { return Bits<float>(v << 16); }
  ALWAYS uint32_t Put(float v) { return FloatToBfloat(v, false); }
};

// Values of four bits share a byte, all others have one each.
template <class F>
inline constexpr uint32_t kDistance = F::kBits == 4 ? 4 : 8;

// The first source goes into the upper part.
template <class F, bool kRelu>
const Inst* NarrowOfFloats(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  const float* b = In<float>(w, i, 2);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    return FloatToNarrow<F, kRelu>(a[l]) << kDistance<F> | FloatToNarrow<F, kRelu>(b[l]);
  });
  return i + 1;
}
template <class F, class Pair, bool kRelu>
const Inst* NarrowOfPair(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    return FloatToNarrow<F, kRelu>(Pair::Get(a[l] >> 16)) << kDistance<F> | FloatToNarrow<F, kRelu>(Pair::Get(a[l]));
  });
  return i + 1;
}
template <class F, class Pair, bool kRelu>
const Inst* PairOfNarrow(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const auto one = [](uint32_t v) {
    const float wide = NarrowToFloat<F>(v);
    return Pair::Put(kRelu && wide <= 0 ? 0.0f : wide);
  };
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return one(a[l] >> kDistance<F>) << 16 | one(a[l]); });
  return i + 1;
}

template <bool kUp, bool kSatfinite>
const Inst* ScalesOfFloats(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  const float* b = In<float>(w, i, 2);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) {
    return FloatToScale<kUp, kSatfinite>(a[l]) << 8 | FloatToScale<kUp, kSatfinite>(b[l]);
  });
  return i + 1;
}
template <bool kUp, bool kSatfinite>
const Inst* ScalesOfPair(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const auto one = [](uint32_t v) { return FloatToScale<kUp, kSatfinite>(BfloatPair::Get(v)); };
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return one(a[l] >> 16) << 8 | one(a[l]); });
  return i + 1;
}
const Inst* PairOfScales(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const auto one = [](uint32_t v) { return BfloatPair::Put(ScaleToFloat(v & 0xff)); };
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return one(a[l] >> 8) << 16 | one(a[l]); });
  return i + 1;
}

}  // namespace

OpRows NarrowRows() {
#define NARROW_RELU(relu, kRelu, type, F)                                                     \
  {"cvt.rn" relu ".satfinite." type ".f32", NarrowOfFloats<F, kRelu>, "daa"},                 \
      {"cvt.rn" relu ".satfinite." type ".f16x2", NarrowOfPair<F, HalfPair, kRelu>, "da"},    \
      {"cvt.rn" relu ".satfinite." type ".bf16x2", NarrowOfPair<F, BfloatPair, kRelu>, "da"}, \
      {"cvt.rn" relu ".f16x2." type, PairOfNarrow<F, HalfPair, kRelu>, "da"},                 \
      {"cvt.rn" relu ".bf16x2." type, PairOfNarrow<F, BfloatPair, kRelu>, "da"}, {            \
    "cvt.rn" relu ".satfinite.bf16x2." type, PairOfNarrow<F, BfloatPair, kRelu>, "da"         \
  }
#define NARROW(type, F) NARROW_RELU("", false, type, F), NARROW_RELU(".relu", true, type, F)
#define SCALES(mode, kUp)                                                       \
  {"cvt." mode ".ue8m0x2.f32", ScalesOfFloats<kUp, false>, "daa"},              \
      {"cvt." mode ".satfinite.ue8m0x2.f32", ScalesOfFloats<kUp, true>, "daa"}, \
      {"cvt." mode ".ue8m0x2.bf16x2", ScalesOfPair<kUp, false>, "da"}, {        \
    "cvt." mode ".satfinite.ue8m0x2.bf16x2", ScalesOfPair<kUp, true>, "da"      \
  }
  static const OpRow kRows[] = {
      NARROW("e4m3x2", E4m3), NARROW("e5m2x2", E5m2),
      NARROW("e2m3x2", E2m3), NARROW("e3m2x2", E3m2),
      NARROW("e2m1x2", E2m1), SCALES("rz", false),
      SCALES("rp", true),     {"cvt.rn.bf16x2.ue8m0x2", PairOfScales, "da"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
