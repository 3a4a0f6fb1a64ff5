// IEEE binary16, alone and in pairs (PTX ISA "Half Precision Floating Point Instructions", "cvt").
#include "gpu/soft/ops_half.h"

#include "gpu/soft/ops_compare.h"
#include "gpu/soft/ops_convert.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class D>
const Inst* FromHalf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const bool sat = i->flags & kSat;
  Each<D>(w, i, 0, [&](uint32_t l) {
    const auto v = static_cast<D>(HalfToFloat(static_cast<uint16_t>(a[l])));
    return sat ? Saturate(v) : Canonical(v);
  });
  return i + 1;
}
template <class S, bool kToZero>
const Inst* ToHalf(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  const uint8_t flags = i->flags;
  Each<uint16_t>(w, i, 0, [&](uint32_t l) {
    auto v = static_cast<double>(a[l]);
    if (flags & kSat) v = Saturate(v);
    return FloatToHalf(v, kToZero);
  });
  return i + 1;
}

// Conversions of binary16 to integers and to integral values.
template <class D, Integral kHow>
const Inst* HalfToInt(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<D>(w, i, 0, [&](uint32_t l) { return ToInt<D, float, kHow>(HalfToFloat(static_cast<uint16_t>(a[l]))); });
  return i + 1;
}
// 64-bit integers that double does not hold are infinite as binary16.
template <class S>
const Inst* IntToHalf(Warp& w, const Inst* i) {
  const Slot<S>* a = In<S>(w, i, 1);
  const bool sat = i->flags & kSat;
  Each<uint16_t>(w, i, 0, [&](uint32_t l) {
    const auto v = static_cast<double>(Value<S>(a[l]));
    return FloatToHalf(sat ? Saturate(v) : v, false);
  });
  return i + 1;
}
template <Integral kHow>
const Inst* HalfToIntegral(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const bool sat = i->flags & kSat;
  Each<uint16_t>(w, i, 0, [&](uint32_t l) {
    const double v = RoundTo<kHow>(static_cast<double>(HalfToFloat(static_cast<uint16_t>(a[l]))));
    return FloatToHalf(sat ? Saturate(v) : v, false);
  });
  return i + 1;
}

// Arithmetic of binary16, rounded once: sums and products of halves are exact in double, those of fma in 64 bits.
struct HalfAdd {
  ALWAYS uint16_t Do(double a, double b, double) { return FloatToHalf(a + b, false); }
};
struct HalfSub {
  ALWAYS uint16_t Do(double a, double b, double) { return FloatToHalf(a - b, false); }
};
struct HalfMul {
  ALWAYS uint16_t Do(double a, double b, double) { return FloatToHalf(a * b, false); }
};
struct HalfFma {
  ALWAYS uint16_t Do(double a, double b, double c) {
    const long double exact = static_cast<long double>(a * b) + c;
    auto r = static_cast<double>(exact);
    // Rounded to odd, so that the second rounding sees that there was more.
    if (exact == exact && static_cast<long double>(r) != exact) {
      auto bits = Bits<uint64_t>(r);
      const bool above = (exact > 0) == (static_cast<long double>(r) > exact);
      if (above) --bits;
      r = Bits<double>(bits | 1);
    }
    return FloatToHalf(r, false);
  }
};
// kOperands sources; kPair: two halves in 32 bits.
template <class F, int kOperands, bool kPair>
const Inst* Half(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  const uint32_t* c = kOperands == 3 ? In<uint32_t>(w, i, 3) : b;
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = 0;
    for (int part = 0; part < (kPair ? 32 : 16); part += 16) {
      const uint16_t h =
          F::Do(HalfToFloat(static_cast<uint16_t>(a[l] >> part)), HalfToFloat(static_cast<uint16_t>(b[l] >> part)),
                HalfToFloat(static_cast<uint16_t>(c[l] >> part)));
      r |= static_cast<uint32_t>(h) << part;
    }
    return r;
  });
  return i + 1;
}

// A NaN loses against a number, unless kNan; -0 is below +0.
template <bool kMax, bool kNan>
struct HalfPick {
  ALWAYS uint16_t Do(double a, double b, double) {
    if (a != a || b != b) {
      if (kNan || (a != a && b != b)) return 0x7fff;
      return FloatToHalf(a != a ? b : a, false);
    }
    const bool first = a == b ? (Bits<uint64_t>(a) >> 63 != 0) != kMax : (a < b) != kMax;
    return FloatToHalf(first ? a : b, false);
  }
};
struct HalfNeg {
  ALWAYS uint32_t Do(uint32_t v) { return v ^ 0x80008000u; }
};
struct HalfAbs {
  ALWAYS uint32_t Do(uint32_t v) { return v & 0x7fff7fffu; }
};
template <class F, bool kPair>
const Inst* HalfSign(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) { return F::Do(a[l]) & (kPair ? ~0u : 0xffffu); });
  return i + 1;
}

// Comparisons: setp of f16, set of f16 and f16x2 (1.0 or 0), set to u32 (all ones or 0).
ALWAYS float HalfAt(uint32_t v, int part) { return HalfToFloat(static_cast<uint16_t>(v >> part)); }
template <class C>
const Inst* SetpHalf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 2);
  const uint32_t* b = In<uint32_t>(w, i, 3);
  uint32_t r = 0;
  for (uint32_t l = 0; l < kLanes; ++l)
    r |= static_cast<uint32_t>(C::template Do<float>(HalfAt(a[l], 0), HalfAt(b[l], 0))) << l;
  const uint32_t c = i->aux != 0 ? Pred(w, i, 4) : 0;
  WritePred(Pred(w, i, 0), Combine(i->aux, r, c), w.mask);
  WritePred(Pred(w, i, 1), Combine(i->aux, ~r, c), w.mask);
  return i + 1;
}
template <class C, uint32_t kYes, bool kPair>
const Inst* SetHalf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = In<uint32_t>(w, i, 2);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    uint32_t r = 0;
    for (int part = 0; part < (kPair ? 32 : 16); part += 16)
      if (C::template Do<float>(HalfAt(a[l], part), HalfAt(b[l], part))) r |= kYes << part;
    return r;
  });
  return i + 1;
}

}  // namespace

OpRows HalfRows() {
#define HALF_INT(t, T, d, a)                                                    \
  {"cvt.rni." t ".f16", HalfToInt<T, kNearest>, d "a", kTakesFtz | kTakesSat},  \
      {"cvt.rzi." t ".f16", HalfToInt<T, kZero>, d "a", kTakesFtz | kTakesSat}, \
      {"cvt.rmi." t ".f16", HalfToInt<T, kDown>, d "a", kTakesFtz | kTakesSat}, \
      {"cvt.rpi." t ".f16", HalfToInt<T, kUp>, d "a", kTakesFtz | kTakesSat}, { \
    "cvt.f16." t, IntToHalf<T>, "d" a, kTakesSat                                \
  }
#define HALF_SETP(cmp, C) \
  { "setp." cmp ".f16", SetpHalf<C>, "Qaa", kCombines }
#define HALF_SET(cmp, C)                                              \
  {"set." cmp ".f16.f16", SetHalf<C, 0x3c00, false>, "daa"},          \
      {"set." cmp ".f16x2.f16x2", SetHalf<C, 0x3c00, true>, "daa"}, { \
    "set." cmp ".u32.f16", SetHalf<C, 0xffffffff, false>, "daa"       \
  }
#define HALF_ALL(cmp, C) HALF_SETP(cmp, C), HALF_SET(cmp, C)
  static const OpRow kRows[] = {
      {"cvt.f32.f16", FromHalf<float>, "da", kTakesFtz | kTakesSat},
      {"cvt.f64.f16", FromHalf<double>, "Da", kTakesSat},
      {"cvt.f16.f32", ToHalf<float, false>, "da", kTakesFtz | kTakesSat},
      {"cvt.f16.f64", ToHalf<double, false>, "dA", kTakesSat},
      {"cvt.rz.f16.f32", ToHalf<float, true>, "da", kTakesFtz | kTakesSat},
      {"add.f16", Half<HalfAdd, 2, false>, "daa"},
      {"sub.f16", Half<HalfSub, 2, false>, "daa"},
      {"mul.f16", Half<HalfMul, 2, false>, "daa"},
      {"fma.f16", Half<HalfFma, 3, false>, "daaa"},
      {"add.f16x2", Half<HalfAdd, 2, true>, "daa"},
      {"sub.f16x2", Half<HalfSub, 2, true>, "daa"},
      {"mul.f16x2", Half<HalfMul, 2, true>, "daa"},
      {"fma.f16x2", Half<HalfFma, 3, true>, "daaa"},
      HALF_INT("u8", uint8_t, "d", "a"),
      HALF_INT("s8", int8_t, "d", "a"),
      HALF_INT("u16", uint16_t, "d", "a"),
      HALF_INT("s16", int16_t, "d", "a"),
      HALF_INT("u32", uint32_t, "d", "a"),
      HALF_INT("s32", int32_t, "d", "a"),
      HALF_INT("u64", uint64_t, "D", "A"),
      HALF_INT("s64", int64_t, "D", "A"),
      {"cvt.rni.f16.f16", HalfToIntegral<kNearest>, "da", kTakesFtz | kTakesSat},
      {"cvt.rzi.f16.f16", HalfToIntegral<kZero>, "da", kTakesFtz | kTakesSat},
      {"cvt.rmi.f16.f16", HalfToIntegral<kDown>, "da", kTakesFtz | kTakesSat},
      {"cvt.rpi.f16.f16", HalfToIntegral<kUp>, "da", kTakesFtz | kTakesSat},
      HALF_ALL("eq", Eq),
      HALF_ALL("ne", OrderedNe),
      HALF_ALL("lt", Lt),
      HALF_ALL("le", Le),
      HALF_ALL("gt", Gt),
      HALF_ALL("ge", Ge),
      HALF_ALL("equ", Equ),
      HALF_ALL("neu", Ne),
      HALF_ALL("ltu", Ltu),
      HALF_ALL("leu", Leu),
      HALF_ALL("gtu", Gtu),
      HALF_ALL("geu", Geu),
      HALF_ALL("num", Num),
      HALF_ALL("nan", Nan),
      {"min.f16", Half<HalfPick<false, false>, 2, false>, "daa"},
      {"min.f16x2", Half<HalfPick<false, false>, 2, true>, "daa"},
      {"min.NaN.f16", Half<HalfPick<false, true>, 2, false>, "daa"},
      {"min.NaN.f16x2", Half<HalfPick<false, true>, 2, true>, "daa"},
      {"max.f16", Half<HalfPick<true, false>, 2, false>, "daa"},
      {"max.f16x2", Half<HalfPick<true, false>, 2, true>, "daa"},
      {"max.NaN.f16", Half<HalfPick<true, true>, 2, false>, "daa"},
      {"max.NaN.f16x2", Half<HalfPick<true, true>, 2, true>, "daa"},
      {"neg.f16", HalfSign<HalfNeg, false>, "da"},
      {"neg.f16x2", HalfSign<HalfNeg, true>, "da"},
      {"abs.f16", HalfSign<HalfAbs, false>, "da"},
      {"abs.f16x2", HalfSign<HalfAbs, true>, "da"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
