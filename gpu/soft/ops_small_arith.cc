// Arithmetic of f16 and bf16, alone and in pairs (PTX ISA "Half Precision Floating Point Instructions").
#include "gpu/soft/ops_small_float.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Operands and results are the 16 bits of a value.
#define SMALL_OP(Name, expr)                                      \
  struct Name {                                                   \
    template <class Format>                                       \
    ALWAYS uint32_t Do(uint32_t a, uint32_t b, uint32_t c) {      \
      static_cast<void>(b);                                       \
      static_cast<void>(c);                                       \
      const auto get = [](uint32_t v) { return Format::Get(v); }; \
      static_cast<void>(get);                                     \
      return expr;                                                \
    }                                                             \
  };
SMALL_OP(SmallAdd, Format::Put(SumToOdd(get(a), get(b))))
SMALL_OP(SmallSub, Format::Put(SumToOdd(get(a), -get(b))))
SMALL_OP(SmallMul, Format::Put(get(a) * get(b)))
// The product is exact in f64.
SMALL_OP(SmallFma, Format::Put(SumToOdd(get(a) * get(b), get(c))))
SMALL_OP(SmallNeg, a ^ kSmallSign)
SMALL_OP(SmallAbs, a & ~kSmallSign)
// Through double: far better than the documented bounds.
SMALL_OP(SmallEx2, Format::Put(__builtin_exp2(get(a))))
SMALL_OP(SmallTanh, Format::Put(__builtin_tanh(get(a))))

// A NaN loses against a number, unless kNanWins; -0 is below +0.
template <bool kMax, bool kNanWins, bool kXorSign>
struct SmallPick {
  template <class Format>
  ALWAYS uint32_t Do(uint32_t a, uint32_t b, uint32_t) {
    const uint32_t sign = kXorSign ? (a ^ b) & kSmallSign : 0;
    if (kXorSign) {
      a &= ~kSmallSign;
      b &= ~kSmallSign;
    }
    const bool nan_a = SmallIsNan<Format>(a);
    const bool nan_b = SmallIsNan<Format>(b);
    if (nan_a || nan_b) return kNanWins || (nan_a && nan_b) ? kSmallNan : (nan_a ? b : a) | sign;
    const auto rank = [](uint32_t v) {
      return (v & kSmallSign) != 0 ? -static_cast<int32_t>(v & ~kSmallSign) - 1 : static_cast<int32_t>(v);
    };
    return ((rank(a) > rank(b)) == kMax ? a : b) | sign;
  }
};
using SmallMin = SmallPick<false, false, false>;
using SmallMax = SmallPick<true, false, false>;
using SmallMinNan = SmallPick<false, true, false>;
using SmallMaxNan = SmallPick<true, true, false>;
using SmallMinXor = SmallPick<false, false, true>;
using SmallMaxXor = SmallPick<true, false, true>;
using SmallMinNanXor = SmallPick<false, true, true>;
using SmallMaxNanXor = SmallPick<true, true, true>;

// kPair: two values in 32 bits.
template <class Format, class F, int kOperands, bool kPair, bool kRelu>
const Inst* Small(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = kOperands > 1 ? In<uint32_t>(w, i, 2) : a;
  const uint32_t* c = kOperands > 2 ? In<uint32_t>(w, i, 3) : a;
  const bool ftz = i->flags & kFtz;
  const bool sat = i->flags & kSat;
  const auto in = [&](uint32_t v) { return ftz ? SmallFlush<Format>(v & 0xffff) : v & 0xffff; };
  const auto part = [&](uint32_t l, uint32_t shift) {
    uint32_t r = F::template Do<Format>(in(a[l] >> shift), in(b[l] >> shift), in(c[l] >> shift));
    if (ftz) r = SmallFlush<Format>(r);
    if (sat) r = SmallSaturate<Format>(r);
    return kRelu ? SmallRelu<Format>(r) : r;
  };
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return kPair ? part(l, 0) | part(l, 16) << 16 : part(l, 0); });
  return i + 1;
}

}  // namespace

OpRows SmallArithmeticRows() {
#define SMALL(name, type, Format, F, operands, relu, sig, traits)           \
  {name "." type, Small<Format, F, operands, false, relu>, sig, traits}, {  \
    name "." type "x2", Small<Format, F, operands, true, relu>, sig, traits \
  }
#define SMALL_ALL(type, Format, ftz, sat)                                               \
  SMALL("add", type, Format, SmallAdd, 2, false, "daa", ftz | sat),                     \
      SMALL("sub", type, Format, SmallSub, 2, false, "daa", ftz | sat),                 \
      SMALL("mul", type, Format, SmallMul, 2, false, "daa", ftz | sat),                 \
      SMALL("fma", type, Format, SmallFma, 3, false, "daaa", ftz | sat),                \
      SMALL("fma.relu", type, Format, SmallFma, 3, true, "daaa", ftz),                  \
      SMALL("min", type, Format, SmallMin, 2, false, "daa", ftz),                       \
      SMALL("max", type, Format, SmallMax, 2, false, "daa", ftz),                       \
      SMALL("min.NaN", type, Format, SmallMinNan, 2, false, "daa", ftz),                \
      SMALL("max.NaN", type, Format, SmallMaxNan, 2, false, "daa", ftz),                \
      SMALL("min.xorsign.abs", type, Format, SmallMinXor, 2, false, "daa", ftz),        \
      SMALL("max.xorsign.abs", type, Format, SmallMaxXor, 2, false, "daa", ftz),        \
      SMALL("min.NaN.xorsign.abs", type, Format, SmallMinNanXor, 2, false, "daa", ftz), \
      SMALL("max.NaN.xorsign.abs", type, Format, SmallMaxNanXor, 2, false, "daa", ftz), \
      SMALL("neg", type, Format, SmallNeg, 1, false, "da", ftz),                        \
      SMALL("abs", type, Format, SmallAbs, 1, false, "da", ftz),                        \
      SMALL("tanh.approx", type, Format, SmallTanh, 1, false, "da", 0)
  static const OpRow kRows[] = {
      SMALL_ALL("f16", Binary16, kTakesFtz, kTakesSat),
      SMALL_ALL("bf16", Bfloat16, 0, 0),
      SMALL("ex2.approx", "f16", Binary16, SmallEx2, 1, false, "da", 0),
      SMALL("ex2.approx", "bf16", Bfloat16, SmallEx2, 1, false, "da", kTakesFtz),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
