// SPDX-License-Identifier: Apache-2.0
// Floating point (PTX ISA "Floating Point Instructions"). The IEEE operations are bit-exact. The .approx ones are
// computed to better than their documented bounds: correctly rounded where the CPU does that.
#include "gpu/soft/ops/approximations.h"
#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

ALWAYS float FusedMultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ALWAYS double FusedMultiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }
ALWAYS float Root(float a) { return __builtin_sqrtf(a); }
ALWAYS double Root(double a) { return __builtin_sqrt(a); }

struct FAdd {
  template <class T>
  ALWAYS T Do(T a, T b) {
    return a + b;
  }
};
struct FSub {
  template <class T>
  ALWAYS T Do(T a, T b) {
    return a - b;
  }
};
struct FMul {
  template <class T>
  ALWAYS T Do(T a, T b) {
    return a * b;
  }
};
struct FDiv {
  template <class T>
  ALWAYS T Do(T a, T b) {
    return a / b;
  }
};
// Beyond 2^126 the divisor's reciprocal is flushed ("div.approx").
struct FDivApprox {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const T size = b < 0 ? -b : b;
    const T limit = Bits<float>(0x7e800000u);
    const T scale = size > limit && size <= Bits<float>(0x7f7fffffu) ? T(0) : T(1);
    return scale == T(0) ? a * (b < 0 ? T(-0.0) : T(0)) : a / b;
  }
};
struct FFma {
  template <class T>
  ALWAYS T Do(T a, T b, T c) {
    return FusedMultiplyAdd(a, b, c);
  }
};
struct FSqrt {
  template <class T>
  ALWAYS T Do(T a) {
    return Root(a);
  }
};
struct FRcp {
  template <class T>
  ALWAYS T Do(T a) {
    return T(1) / a;
  }
};

ALWAYS bool IsNegative(float v) { return Bits<uint32_t>(v) >> 31; }
ALWAYS bool IsNegative(double v) { return Bits<uint64_t>(v) >> 63; }
// A NaN loses against a number; -0 is below +0.
struct FMin {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const T least = a < b || (a == b && IsNegative(a)) ? a : b;
    return b != b ? a : (a != a ? b : least);
  }
};
struct FMax {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const T most = a > b || (a == b && !IsNegative(a)) ? a : b;
    return b != b ? a : (a != a ? b : most);
  }
};
struct FMinNan {
  template <class T>
  ALWAYS T Do(T a, T b) {
    return a != a ? a : b != b ? b : FMin::Do<T>(a, b);
  }
};
struct FMaxNan {
  template <class T>
  ALWAYS T Do(T a, T b) {
    return a != a ? a : b != b ? b : FMax::Do<T>(a, b);
  }
};
// Of the magnitudes, with the signs of the operands combined ("min.xorsign.abs").
template <class F>
struct FXorSign {
  template <class T>
  ALWAYS T Do(T a, T b) {
    const bool negative = IsNegative(a) != IsNegative(b);
    const T r = F::template Do<T>(__builtin_fabsf(a), __builtin_fabsf(b));
    return negative ? -r : r;
  }
};
// Of three, or of their magnitudes.
template <class F, bool kAbs>
struct FThree {
  template <class T>
  ALWAYS T Do(T a, T b, T c) {
    if constexpr (kAbs)
      return F::template Do<T>(F::template Do<T>(__builtin_fabsf(a), __builtin_fabsf(b)), __builtin_fabsf(c));
    return F::template Do<T>(F::template Do<T>(a, b), c);
  }
};
struct FNeg {
  template <class T>
  ALWAYS T Do(T a) {
    return -a;
  }
};
struct FAbs {
  template <class T>
  ALWAYS T Do(T a) {
    return IsNegative(a) ? -a : a;
  }
};

struct FRsqrt {
  template <class T>
  ALWAYS T Do(T a) {
    return static_cast<T>(1.0 / __builtin_sqrt(static_cast<double>(a)));
  }
};
struct FEx2 {
  template <class T>
  ALWAYS T Do(T a) {
    return Power2(a);
  }
};
struct FLg2 {
  template <class T>
  ALWAYS T Do(T a) {
    return Logarithm2(a);
  }
};
struct FSin {
  template <class T>
  ALWAYS T Do(T a) {
    return Sine(a, 0);
  }
};
struct FCos {
  template <class T>
  ALWAYS T Do(T a) {
    return Sine(a, 1);
  }
};
// Through double and libm.
struct FTanh {
  template <class T>
  ALWAYS T Do(T a) {
    return static_cast<T>(__builtin_tanh(static_cast<double>(a)));
  }
};

// Three loops per operation: plain, .ftz, and whatever else.
template <class T, class F>
ALWAYS void FloatMap(Warp& w, const Inst* i, F f) {
  const auto same = [](T x) { return x; };
  const auto flush = [](T x) { return Flush(x); };
  if (i->flags & kSat) {
    const bool ftz = i->flags & kFtz;
    Each<T>(w, i, 0, [&](uint32_t l) { return Saturate(ftz ? Flush(f(l, flush)) : f(l, same)); });
  } else if (i->flags & kFtz) {
    Map<T>(w, i, 0, [&](uint32_t l) { return Canonical(Flush(f(l, flush))); });
  } else {
    Map<T>(w, i, 0, [&](uint32_t l) { return Canonical(f(l, same)); });
  }
}

// F::Do of kCount operands.
template <class F, int kCount, class T>
struct Float {
  // The value of a lane; `in` is applied to each operand.
  ALWAYS auto Of(const Warp& w, const Inst* i) {
    const T* a = In<T>(w, i, 1);
    const T* b = kCount > 1 ? In<T>(w, i, 2) : a;
    const T* c = kCount > 2 ? In<T>(w, i, 3) : a;
    return [=](uint32_t l, auto in) {
      if constexpr (kCount == 1) return F::template Do<T>(in(a[l]));
      if constexpr (kCount == 2) return F::template Do<T>(in(a[l]), in(b[l]));
      if constexpr (kCount == 3) return F::template Do<T>(in(a[l]), in(b[l]), in(c[l]));
    };
  }
  [[gnu::noinline]] static const Inst* Modified(Warp& w, const Inst* i) {
    FloatMap<T>(w, i, Of(w, i));
    return i + 1;
  }
  static const Inst* Run(Warp& w, const Inst* i) {
    const auto f = Of(w, i);
    if constexpr (sizeof(T) == 4) {
      if (w.mask != kFullMask || i->flags != 0) return Modified(w, i);
    }
    Map<T>(w, i, 0, [&](uint32_t l) { return Canonical(f(l, [](T x) { return x; })); });
    return i + 1;
  }
};
template <class F, class T>
const Inst* F1(Warp& w, const Inst* i) {
  return Float<F, 1, T>::Run(w, i);
}
template <class F, class T>
const Inst* F2(Warp& w, const Inst* i) {
  return Float<F, 2, T>::Run(w, i);
}
template <class F, class T>
const Inst* F3(Warp& w, const Inst* i) {
  return Float<F, 3, T>::Run(w, i);
}
// For what calls libm: active lanes only.
template <class F>
const Inst* Approx(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  const bool ftz = i->flags & kFtz;
  Each<float>(w, i, 0, [&](uint32_t l) {
    const float v = F::template Do<float>(ftz ? Flush(a[l]) : a[l]);
    return Canonical(ftz ? Flush(v) : v);
  });
  return i + 1;
}
template <class F>
const Inst* Each64(Warp& w, const Inst* i) {
  const double* a = In<double>(w, i, 1);
  Each<double>(w, i, 0, [&](uint32_t l) { return F::template Do<double>(a[l]); });
  return i + 1;
}
// rcp/rsqrt.approx.ftz.f64: subnormals are zeros, the low word of the result is zero.
template <class F>
const Inst* Seed64(Warp& w, const Inst* i) {
  const uint64_t* a = In<uint64_t>(w, i, 1);
  constexpr uint64_t kExponent = 0x7ff0000000000000;
  constexpr uint64_t kSign = 0x8000000000000000;
  Each<uint64_t>(w, i, 0, [&](uint32_t l) {
    const uint64_t v = (a[l] & kExponent) == 0 ? a[l] & kSign : a[l] & 0xffffffff00000000;
    const double x = (a[l] & kExponent) == kExponent ? Bits<double>(a[l]) : Bits<double>(v);
    uint64_t r = Bits<uint64_t>(F::template Do<double>(x));
    if ((r & kExponent) == 0) r &= kSign;
    return x != x ? uint64_t{0x7fffffff00000000} : r & 0xffffffff00000000;
  });
  return i + 1;
}

// The value of b with the sign of a.
template <class T, class B>
const Inst* CopySign(Warp& w, const Inst* i) {
  const B* a = In<B>(w, i, 1);
  const B* b = In<B>(w, i, 2);
  constexpr B kSign = B(1) << (8 * sizeof(B) - 1);
  Map<B>(w, i, 0, [&](uint32_t l) { return static_cast<B>((a[l] & kSign) | (b[l] & ~kSign)); });
  return i + 1;
}

constexpr uint8_t k32 = kTakesFtz | kTakesSat | kRounds;
constexpr uint8_t kPlain32 = kTakesFtz;

}  // namespace

OpRows FloatRows() {
// The decoder finds these by the number of operands.
#define THREE(op, F, FNan)                                                           \
  {"@" op ".three.f32", F3<FThree<F, false>, float>, "daaa", kPlain32},              \
      {"@" op ".abs.three.f32", F3<FThree<F, true>, float>, "daaa", kPlain32},       \
      {"@" op ".NaN.three.f32", F3<FThree<FNan, false>, float>, "daaa", kPlain32}, { \
    "@" op ".NaN.abs.three.f32", F3<FThree<FNan, true>, float>, "daaa", kPlain32     \
  }
  static const OpRow kRows[] = {
      {"add.f32", F2<FAdd, float>, "daa", k32},
      {"sub.f32", F2<FSub, float>, "daa", k32},
      {"mul.f32", F2<FMul, float>, "daa", k32},
      {"fma.f32", F3<FFma, float>, "daaa", k32},
      {"mad.f32", F3<FFma, float>, "daaa", k32},
      {"div.f32", F2<FDiv, float>, "daa", k32},
      {"div.full.f32", F2<FDiv, float>, "daa", kPlain32},
      {"div.approx.f32", F2<FDivApprox, float>, "daa", kPlain32},
      {"sqrt.f32", F1<FSqrt, float>, "da", k32},
      {"sqrt.approx.f32", F1<FSqrt, float>, "da", kPlain32},
      {"rcp.f32", F1<FRcp, float>, "da", k32},
      {"rcp.approx.f32", F1<FRcp, float>, "da", kPlain32},
      {"rsqrt.approx.f32", F1<FRsqrt, float>, "da", kPlain32},
      {"ex2.approx.f32", F1<FEx2, float>, "da", kPlain32},
      {"lg2.approx.f32", F1<FLg2, float>, "da", kPlain32},
      {"sin.approx.f32", F1<FSin, float>, "da", kPlain32},
      {"cos.approx.f32", F1<FCos, float>, "da", kPlain32},
      {"tanh.approx.f32", Approx<FTanh>, "da", kPlain32},
      {"min.f32", F2<FMin, float>, "daa", kPlain32},
      {"max.f32", F2<FMax, float>, "daa", kPlain32},
      {"min.NaN.f32", F2<FMinNan, float>, "daa", kPlain32},
      {"max.NaN.f32", F2<FMaxNan, float>, "daa", kPlain32},
      {"min.xorsign.abs.f32", F2<FXorSign<FMin>, float>, "daa", kPlain32},
      {"max.xorsign.abs.f32", F2<FXorSign<FMax>, float>, "daa", kPlain32},
      {"min.NaN.xorsign.abs.f32", F2<FXorSign<FMinNan>, float>, "daa", kPlain32},
      {"max.NaN.xorsign.abs.f32", F2<FXorSign<FMaxNan>, float>, "daa", kPlain32},
      THREE("min", FMin, FMinNan),
      THREE("max", FMax, FMaxNan),
      {"neg.f32", F1<FNeg, float>, "da", kPlain32},
      {"abs.f32", F1<FAbs, float>, "da", kPlain32},
      {"copysign.f32", CopySign<float, uint32_t>, "daa"},
      {"add.f64", F2<FAdd, double>, "DAA", kRounds},
      {"sub.f64", F2<FSub, double>, "DAA", kRounds},
      {"mul.f64", F2<FMul, double>, "DAA", kRounds},
      {"fma.f64", F3<FFma, double>, "DAAA", kRounds},
      {"mad.f64", F3<FFma, double>, "DAAA", kRounds},
      {"div.f64", F2<FDiv, double>, "DAA", kRounds},
      {"sqrt.f64", F1<FSqrt, double>, "DA", kRounds},
      {"rcp.f64", F1<FRcp, double>, "DA", kRounds},
      {"min.f64", F2<FMin, double>, "DAA"},
      {"max.f64", F2<FMax, double>, "DAA"},
      {"neg.f64", F1<FNeg, double>, "DA"},
      {"abs.f64", F1<FAbs, double>, "DA"},
      {"copysign.f64", CopySign<double, uint64_t>, "DAA"},
      {"rcp.approx.ftz.f64", Seed64<FRcp>, "DA"},
      {"rsqrt.approx.ftz.f64", Seed64<FRsqrt>, "DA"},
      {"rsqrt.approx.f64", Each64<FRsqrt>, "DA"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
