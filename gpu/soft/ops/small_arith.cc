// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16 and bf16, alone and in pairs (PTX ISA "Half Precision Floating Point Instructions").
#include "gpu/soft/number/small_float.h"
#include "gpu/soft/ops/approximations.h"
#include "gpu/soft/ops/half_vectors.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

// Operands and results are the 16 bits of a value. vectors: neither a branch nor a call.
#define SMALL_OP(Name, vectors, expr)                             \
  struct Name {                                                   \
    static constexpr bool kVectors = vectors;                     \
    template <class Format>                                       \
    ALWAYS uint32_t Do(uint32_t a, uint32_t b, uint32_t c) {      \
      static_cast<void>(b);                                       \
      static_cast<void>(c);                                       \
      const auto get = [](uint32_t v) { return Format::Get(v); }; \
      static_cast<void>(get);                                     \
      return expr;                                                \
    }                                                             \
  };
SMALL_OP(SmallAdd, true, Format::Put(SumToOdd(get(a), get(b))))
SMALL_OP(SmallSub, true, Format::Put(SumToOdd(get(a), -get(b))))
SMALL_OP(SmallMul, true, Format::Put(get(a) * get(b)))
// The product is exact.
SMALL_OP(SmallFma, true, Format::Put(SumToOdd(get(a) * get(b), get(c))))
SMALL_OP(SmallNeg, true, a ^ kSmallSign)
SMALL_OP(SmallAbs, true, a & ~kSmallSign)
// Far better than the documented bounds.
SMALL_OP(SmallEx2, true, Format::Put(static_cast<typename Format::Math>(Power2(static_cast<float>(get(a))))))
SMALL_OP(SmallTanh, false, Format::Put(__builtin_tanh(static_cast<double>(get(a)))))

// A NaN loses against a number, unless kNanWins; -0 is below +0.
template <bool kMax, bool kNanWins, bool kXorSign>
struct SmallPick {
  static constexpr bool kVectors = true;
  template <class Format>
  ALWAYS uint32_t Do(uint32_t a, uint32_t b, uint32_t) {
    const uint32_t sign = kXorSign ? (a ^ b) & kSmallSign : 0;
    if (kXorSign) {
      a &= ~kSmallSign;
      b &= ~kSmallSign;
    }
    const bool nan_a = SmallIsNan<Format>(a);
    const bool nan_b = SmallIsNan<Format>(b);
    const auto rank = [](uint32_t v) {
      const auto size = static_cast<int32_t>(v & ~kSmallSign);
      return (v & kSmallSign) != 0 ? -size - 1 : size;
    };
    // Each NaN is a choice of its own, so that nothing branches.
    uint32_t r = (rank(a) > rank(b)) == kMax ? a : b;
    r = nan_a ? b : nan_b ? a : r;
    r |= sign;
    const bool none = kNanWins ? static_cast<int>(nan_a) | static_cast<int>(nan_b)
                               : static_cast<int>(nan_a) & static_cast<int>(nan_b);
    return none ? kSmallNan : r;
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

template <class Format>
inline constexpr bool kIsBinary16 = false;
template <>
inline constexpr bool kIsBinary16<Binary16> = true;

// What the whole warp's vectors have under the name of F.
template <class F>
inline constexpr HalfOp kHalfOp = HalfOp::kNone;
template <>
inline constexpr HalfOp kHalfOp<SmallAdd> = HalfOp::kAdd;
template <>
inline constexpr HalfOp kHalfOp<SmallSub> = HalfOp::kSub;
template <>
inline constexpr HalfOp kHalfOp<SmallMul> = HalfOp::kMul;
template <>
inline constexpr HalfOp kHalfOp<SmallFma> = HalfOp::kFma;

// What one lane gives; kPair: two values in 32 bits. kPlain: neither ftz nor sat.
template <class Format, class F, bool kPair, bool kRelu, bool kPlain>
ALWAYS uint32_t SmallLane(uint32_t a, uint32_t b, uint32_t c, bool ftz, bool sat) {
  const auto in = [&](uint32_t v) { return !kPlain && ftz ? SmallFlush<Format>(v & 0xffff) : v & 0xffff; };
  const auto part = [&](uint32_t shift) {
    uint32_t r = F::template Do<Format>(in(a >> shift), in(b >> shift), in(c >> shift));
    if (!kPlain && ftz) r = SmallFlush<Format>(r);
    if (!kPlain && sat) r = SmallSaturate<Format>(r);
    return kRelu ? SmallRelu<Format>(r) : r;
  };
  return kPair ? part(0) | part(16) << 16 : part(0);
}
template <class Format, class F, int kOperands, bool kPair, bool kRelu>
const Inst* Small(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const uint32_t* b = kOperands > 1 ? In<uint32_t>(w, i, 2) : a;
  const uint32_t* c = kOperands > 2 ? In<uint32_t>(w, i, 3) : a;
  const bool ftz = i->flags & kFtz;
  const bool sat = i->flags & kSat;
  if constexpr (kHasHalfVectors && kHalfOp<F> != HalfOp::kNone && kIsBinary16<Format> && !kRelu) {
    if (!ftz && !sat && w.mask == kFullMask) {
      HalfWarp<kHalfOp<F>, kPair>(Out<uint32_t>(w, i, 0), a, b, c);
      return i + 1;
    }
  }
  if (F::kVectors && !ftz && !sat) {
    Map<uint32_t>(w, i, 0,
                  [&](uint32_t l) { return SmallLane<Format, F, kPair, kRelu, true>(a[l], b[l], c[l], false, false); });
  } else {
    Each<uint32_t>(w, i, 0,
                   [&](uint32_t l) { return SmallLane<Format, F, kPair, kRelu, false>(a[l], b[l], c[l], ftz, sat); });
  }
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
