// bfloat16 and tf32, alone and in pairs (PTX ISA "cvt", "Half Precision Floating Point Instructions").
#include "gpu/soft/ops_half.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kNan = 0x7fff;

ALWAYS float FromBf(uint32_t v) { return Bits<float>(v << 16); }
// To the nearest, ties to even, or toward zero.
ALWAYS uint32_t ToBf(float v, bool to_zero) {
  if (v != v) return kNan;
  const uint32_t b = Bits<uint32_t>(v);
  return (to_zero ? b : b + 0x7fff + (b >> 16 & 1)) >> 16;
}
// Inexact results are made odd, so that rounding them once more is the same as rounding once.
ALWAYS double SumToOdd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  auto bits = Bits<uint64_t>(sum);
  if (error == 0 || error != error || (bits & 1) != 0) return sum;
  return Bits<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
ALWAYS uint32_t ToBf(double v) {
  const auto near = static_cast<float>(v);
  auto bits = Bits<uint32_t>(near);
  if (v != v || static_cast<double>(near) == v) return ToBf(near, false);
  if ((near < 0 ? -static_cast<double>(near) : static_cast<double>(near)) > (v < 0 ? -v : v)) --bits;
  return ToBf(Bits<float>(bits | 1), false);
}

struct BfAdd {
  ALWAYS uint32_t Do(float a, float b, float) { return ToBf(SumToOdd(static_cast<double>(a), static_cast<double>(b))); }
};
struct BfSub {
  ALWAYS uint32_t Do(float a, float b, float) {
    return ToBf(SumToOdd(static_cast<double>(a), -static_cast<double>(b)));
  }
};
struct BfMul {
  ALWAYS uint32_t Do(float a, float b, float) { return ToBf(static_cast<double>(a) * static_cast<double>(b)); }
};
// The product is exact in f64.
template <bool kRelu>
struct BfFma {
  ALWAYS uint32_t Do(float a, float b, float c) {
    const uint32_t r = ToBf(SumToOdd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
    return kRelu && (r & 0x8000) != 0 && r != (kNan | 0x8000) ? 0 : r;
  }
};
template <bool kMax, bool kNanWins>
struct BfPick {
  ALWAYS uint32_t Do(float a, float b, float) {
    if (a != a || b != b) {
      if (kNanWins || (a != a && b != b)) return kNan;
      return Bits<uint32_t>(a != a ? b : a) >> 16;
    }
    const uint32_t x = Bits<uint32_t>(a) >> 16;
    const uint32_t y = Bits<uint32_t>(b) >> 16;
    if (a == b) return kMax ? x & y : x | y;  // -0 is less than +0
    return (a > b) == kMax ? x : y;
  }
};

template <class F, int kOperands, bool kPair>
const Inst* Bf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = kOperands == 3 ? In<uint32_t>(w, i, 3) : b;
  const auto part = [&](uint32_t l, uint32_t shift) {
    return F::Do(FromBf(a[l] >> shift & 0xffff), FromBf(b[l] >> shift & 0xffff), FromBf(c[l] >> shift & 0xffff));
  };
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return kPair ? part(l, 0) | part(l, 16) << 16 : part(l, 0); });
  return i + 1;
}
template <bool kAbs, bool kPair>
const Inst* BfSign(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  constexpr uint32_t kSigns = kPair ? 0x80008000u : 0x8000u;
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return kAbs ? a[l] & ~kSigns : a[l] ^ kSigns; });
  return i + 1;
}

ALWAYS float Relu(float v) { return v <= 0 ? 0 : v; }
template <bool kToZero, bool kRelu>
const Inst* BfOfFloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    const auto v = Bits<float>(a[l]);
    return ToBf(kRelu ? Relu(v) : v, kToZero);
  });
  return i + 1;
}
// The first source goes into the upper half.
template <bool kHalf, bool kToZero, bool kRelu>
const Inst* PairOfFloats(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const auto one = [](uint32_t bits) -> uint32_t {
    const auto v = kRelu ? Relu(Bits<float>(bits)) : Bits<float>(bits);
    return kHalf ? FloatToHalf(static_cast<double>(v), kToZero) : ToBf(v, kToZero);
  };
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return one(a[l]) << 16 | one(b[l]); });
  return i + 1;
}
const Inst* FloatOfBf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return (a[l] & 0xffff) << 16; });
  return i + 1;
}
// To the nearest, ties away from zero, on 10 bits of fraction.
const Inst* TfOfFloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) -> uint32_t {
    if ((a[l] & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
    return (a[l] & 0x7f800000u) == 0x7f800000u ? a[l] : (a[l] + 0x1000u) & ~0x1fffu;
  });
  return i + 1;
}

}  // namespace

OpRows BfloatRows() {
#define BF_ROWS(type, pair)                                                                                            \
  {"add." type, Bf<BfAdd, 2, pair>, "daa"}, {"sub." type, Bf<BfSub, 2, pair>, "daa"},                                  \
      {"mul." type, Bf<BfMul, 2, pair>, "daa"}, {"fma." type, Bf<BfFma<false>, 3, pair>, "daaa"},                      \
      {"fma.rn.relu." type, Bf<BfFma<true>, 3, pair>, "daaa"},                                                         \
      {"min." type, Bf<BfPick<false, false>, 2, pair>, "daa"}, {"max." type, Bf<BfPick<true, false>, 2, pair>, "daa"}, \
      {"min.NaN." type, Bf<BfPick<false, true>, 2, pair>, "daa"},                                                      \
      {"max.NaN." type, Bf<BfPick<true, true>, 2, pair>, "daa"}, {"neg." type, BfSign<false, pair>, "da"}, {           \
    "abs." type, BfSign<true, pair>, "da"                                                                              \
  }
  static const OpRow kRows[] = {
      BF_ROWS("bf16", false),
      BF_ROWS("bf16x2", true),
      {"cvt.f32.bf16", FloatOfBf, "da"},
      {"cvt.bf16.f32", BfOfFloat<false, false>, "da"},
      {"cvt.rz.bf16.f32", BfOfFloat<true, false>, "da"},
      {"cvt.rn.relu.bf16.f32", BfOfFloat<false, true>, "da"},
      {"cvt.rz.relu.bf16.f32", BfOfFloat<true, true>, "da"},
      {"cvt.bf16x2.f32", PairOfFloats<false, false, false>, "daa"},
      {"cvt.rz.bf16x2.f32", PairOfFloats<false, true, false>, "daa"},
      {"cvt.rn.relu.bf16x2.f32", PairOfFloats<false, false, true>, "daa"},
      {"cvt.f16x2.f32", PairOfFloats<true, false, false>, "daa"},
      {"cvt.rz.f16x2.f32", PairOfFloats<true, true, false>, "daa"},
      {"cvt.rn.relu.f16x2.f32", PairOfFloats<true, false, true>, "daa"},
      {"cvt.rna.tf32.f32", TfOfFloat, "da"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
