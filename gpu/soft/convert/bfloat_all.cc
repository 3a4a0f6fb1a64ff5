// SPDX-License-Identifier: Apache-2.0
// Conversions of bfloat16 to and from everything but f32, .satfinite, and tf32 (PTX ISA "cvt"): rare, so lane by lane.
#include "gpu/soft/convert/convert.h"
#include "gpu/soft/number/small_float.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kInfinity = 0x7f80;

ALWAYS float BfloatToFloat(uint32_t v) { return Bits<float>(v << 16); }

// Of a magnitude in whole `units` and a `rest` of them, whose half is `half`: does it round away from zero?
template <Rounding kHow>
ALWAYS bool GoesUp(bool negative, uint64_t units, uint64_t rest, uint64_t half) {
  if constexpr (kHow == Rounding::kNearest) return rest > half || (rest == half && (units & 1) != 0);
  if constexpr (kHow == Rounding::kZero) return false;
  return rest != 0 && negative == (kHow == Rounding::kDown);
}

template <Rounding kHow>
ALWAYS uint32_t IntegerToBfloat(bool negative, uint64_t size) {
  const uint32_t sign = negative ? kSmallSign : 0;
  if (size == 0) return 0;
  const auto top = static_cast<uint32_t>(63 - __builtin_clzll(size));
  const uint32_t base = (127 + top) << 7;
  if (top <= 7) return sign | (base + ((static_cast<uint32_t>(size) << (7 - top)) & 0x7f));
  const uint32_t shift = top - 7;
  const uint64_t units = size >> shift;
  const uint64_t rest = size - (units << shift);
  const uint32_t up = GoesUp<kHow>(negative, units, rest, uint64_t{1} << (shift - 1)) ? 1 : 0;
  return sign | (base + static_cast<uint32_t>(units & 0x7f) + up);
}
template <Rounding kHow>
ALWAYS uint32_t DoubleToBfloat(double v) {
  const auto bits = Bits<uint64_t>(v);
  const bool negative = bits >> 63 != 0;
  const uint32_t sign = negative ? kSmallSign : 0;
  const uint64_t size = bits & ~(uint64_t{1} << 63);
  if (v != v) return kSmallNan;
  if (size == uint64_t{0x7ff} << 52) return sign | kInfinity;
  if (size == 0) return sign;
  // In units of the last place, with what is less than half of the smallest as one bit.
  const int exponent = static_cast<int>(size >> 52) - 1023;
  const uint64_t fraction = (size & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int least = exponent < -126 ? -126 : exponent;
  const int shift = 45 + (least - exponent);
  const uint64_t units = shift > 60 ? 0 : fraction >> shift;
  const uint64_t half = shift > 60 ? uint64_t{1} << 60 : uint64_t{1} << (shift - 1);
  const uint64_t rest = shift > 60 ? 1 : fraction - (units << shift);
  if (exponent > 127) {
    const bool infinite =
        kHow == Rounding::kNearest || (kHow != Rounding::kZero && negative == (kHow == Rounding::kDown));
    return sign | (infinite ? kInfinity : kInfinity - 1);
  }
  const uint32_t up = GoesUp<kHow>(negative, units, rest, half) ? 1 : 0;
  return sign | ((static_cast<uint32_t>(least + 126) << 7) + static_cast<uint32_t>(units) + up);
}

template <class S, Rounding kHow>
const Inst* BfloatOfInt(Warp& w, const Inst* i) {
  const Slot<S>* a = In<S>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) {
    const S v = Value<S>(a[l]);
    const bool negative = v < S(0);
    const auto wide = static_cast<uint64_t>(v);
    return IntegerToBfloat<kHow>(negative, negative ? 0 - wide : wide);
  });
  return i + 1;
}
template <class D, Integral kHow>
const Inst* IntOfBfloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<D>(w, i, 0, [&](uint32_t l) { return ToInt<D, float, kHow>(BfloatToFloat(a[l])); });
  return i + 1;
}
template <Integral kHow>
const Inst* IntegralOfBfloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return FloatToBfloat(RoundTo<kHow>(BfloatToFloat(a[l])), false); });
  return i + 1;
}

// What a lane of another floating-point type is worth.
struct FromFloat {
  using Lane = float;
  ALWAYS double Get(float v) { return static_cast<double>(v); }
};
struct FromDouble {
  using Lane = double;
  ALWAYS double Get(double v) { return v; }
};
struct FromHalf16 {
  using Lane = uint32_t;
  ALWAYS double Get(uint32_t v) { return static_cast<double>(HalfToFloat(v & 0xffff)); }
};
template <class From, Rounding kHow>
const Inst* BfloatOf(Warp& w, const Inst* i) {
  const auto* a = In<typename From::Lane>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return DoubleToBfloat<kHow>(From::Get(a[l])); });
  return i + 1;
}
template <Rounding kHow>
const Inst* HalfOfBfloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<uint32_t>(w, i, 0,
                 [&](uint32_t l) -> uint32_t { return FloatToHalf(static_cast<double>(BfloatToFloat(a[l])), kHow); });
  return i + 1;
}
const Inst* DoubleOfBfloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<double>(w, i, 0, [&](uint32_t l) { return static_cast<double>(BfloatToFloat(a[l])); });
  return i + 1;
}
const Inst* BfloatOfBfloat(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return a[l] & 0xffff; });
  return i + 1;
}

// --- .satfinite and .relu of f32: to f16 and bf16, alone and in pairs ---
template <bool kHalf, Rounding kHow, bool kRelu>
ALWAYS uint32_t Finite(float v) {
  const auto wide = static_cast<double>(kRelu && v <= 0 ? 0.0f : v);
  const uint32_t r = kHalf ? static_cast<uint32_t>(FloatToHalf(wide, kHow)) : DoubleToBfloat<kHow>(wide);
  const uint32_t infinity = kHalf ? 0x7c00u : kInfinity;
  return (r & ~kSmallSign) == infinity ? r - 1 : r;
}
template <bool kHalf, Rounding kHow, bool kRelu>
const Inst* FiniteOfFloat(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  Each<uint32_t>(w, i, 0, [&](uint32_t l) { return Finite<kHalf, kHow, kRelu>(a[l]); });
  return i + 1;
}
template <bool kHalf, Rounding kHow, bool kRelu>
const Inst* FinitePairOfFloats(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  const float* b = In<float>(w, i, 2);
  Each<uint32_t>(w, i, 0,
                 [&](uint32_t l) { return Finite<kHalf, kHow, kRelu>(a[l]) << 16 | Finite<kHalf, kHow, kRelu>(b[l]); });
  return i + 1;
}

// --- tf32: 10 bits of fraction in those of f32 ---
enum class TfRounding { kNearest, kZero, kAway };
template <TfRounding kHow, bool kRelu, bool kFinite>
const Inst* TfOf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Map<uint32_t>(w, i, 0, [&](uint32_t l) -> uint32_t {
    const uint32_t size = a[l] & 0x7fffffffu;
    const uint32_t more = kHow == TfRounding::kAway   ? 0x1000u
                          : kHow == TfRounding::kZero ? 0
                                                      : 0xfff + (size >> 13 & 1);
    uint32_t r = size >= 0x7f800000u ? size : (size + more) & ~0x1fffu;
    if (kFinite) r = r >= 0x7f800000u ? 0x7f7fe000u : r;
    r = kRelu ? (a[l] >> 31 != 0 ? 0 : r) : r | (a[l] & 0x80000000u);
    return size > 0x7f800000u ? 0x7fffffffu : r;
  });
  return i + 1;
}

}  // namespace

OpRows BfloatAllRows() {
#define WITH_INT(t, T, d, a)                                                                                         \
  {"cvt.bf16." t, BfloatOfInt<T, Rounding::kNearest>, "d" a},                                                        \
      {"cvt.rz.bf16." t, BfloatOfInt<T, Rounding::kZero>, "d" a},                                                    \
      {"cvt.rm.bf16." t, BfloatOfInt<T, Rounding::kDown>, "d" a},                                                    \
      {"cvt.rp.bf16." t, BfloatOfInt<T, Rounding::kUp>, "d" a},                                                      \
      {"cvt.rni." t ".bf16", IntOfBfloat<T, kNearest>, d "a"}, {"cvt.rzi." t ".bf16", IntOfBfloat<T, kZero>, d "a"}, \
      {"cvt.rmi." t ".bf16", IntOfBfloat<T, kDown>, d "a"}, {                                                        \
    "cvt.rpi." t ".bf16", IntOfBfloat<T, kUp>, d "a"                                                                 \
  }
#define OF_FLOAT(s, From, a)                                        \
  {"cvt.bf16." s, BfloatOf<From, Rounding::kNearest>, "d" a},       \
      {"cvt.rz.bf16." s, BfloatOf<From, Rounding::kZero>, "d" a},   \
      {"cvt.rm.bf16." s, BfloatOf<From, Rounding::kDown>, "d" a}, { \
    "cvt.rp.bf16." s, BfloatOf<From, Rounding::kUp>, "d" a          \
  }
#define FINITE_OF(mode, kHow, relu, kRelu)                                                       \
  {"cvt." mode relu ".satfinite.f16.f32", FiniteOfFloat<true, kHow, kRelu>, "da"},               \
      {"cvt." mode relu ".satfinite.bf16.f32", FiniteOfFloat<false, kHow, kRelu>, "da"},         \
      {"cvt." mode relu ".satfinite.f16x2.f32", FinitePairOfFloats<true, kHow, kRelu>, "daa"}, { \
    "cvt." mode relu ".satfinite.bf16x2.f32", FinitePairOfFloats<false, kHow, kRelu>, "daa"      \
  }
#define TF(mode, kHow)                                                      \
  {"cvt." mode ".tf32.f32", TfOf<kHow, false, false>, "da"},                \
      {"cvt." mode ".relu.tf32.f32", TfOf<kHow, true, false>, "da"},        \
      {"cvt." mode ".satfinite.tf32.f32", TfOf<kHow, false, true>, "da"}, { \
    "cvt." mode ".relu.satfinite.tf32.f32", TfOf<kHow, true, true>, "da"    \
  }
  static const OpRow kRows[] = {
      WITH_INT("u8", uint8_t, "d", "a"),
      WITH_INT("s8", int8_t, "d", "a"),
      WITH_INT("u16", uint16_t, "d", "a"),
      WITH_INT("s16", int16_t, "d", "a"),
      WITH_INT("u32", uint32_t, "d", "a"),
      WITH_INT("s32", int32_t, "d", "a"),
      WITH_INT("u64", uint64_t, "D", "A"),
      WITH_INT("s64", int64_t, "D", "A"),
      OF_FLOAT("f16", FromHalf16, "a"),
      OF_FLOAT("f64", FromDouble, "A"),
      {"cvt.rm.bf16.f32", BfloatOf<FromFloat, Rounding::kDown>, "da"},
      {"cvt.rp.bf16.f32", BfloatOf<FromFloat, Rounding::kUp>, "da"},
      {"cvt.f16.bf16", HalfOfBfloat<Rounding::kNearest>, "da"},
      {"cvt.rz.f16.bf16", HalfOfBfloat<Rounding::kZero>, "da"},
      {"cvt.rm.f16.bf16", HalfOfBfloat<Rounding::kDown>, "da"},
      {"cvt.rp.f16.bf16", HalfOfBfloat<Rounding::kUp>, "da"},
      {"cvt.f64.bf16", DoubleOfBfloat, "Da"},
      {"cvt.bf16.bf16", BfloatOfBfloat, "da"},
      {"cvt.rni.bf16.bf16", IntegralOfBfloat<kNearest>, "da"},
      {"cvt.rzi.bf16.bf16", IntegralOfBfloat<kZero>, "da"},
      {"cvt.rmi.bf16.bf16", IntegralOfBfloat<kDown>, "da"},
      {"cvt.rpi.bf16.bf16", IntegralOfBfloat<kUp>, "da"},
      FINITE_OF("rn", Rounding::kNearest, "", false),
      FINITE_OF("rz", Rounding::kZero, "", false),
      FINITE_OF("rn", Rounding::kNearest, ".relu", true),
      FINITE_OF("rz", Rounding::kZero, ".relu", true),
      TF("rn", TfRounding::kNearest),
      TF("rz", TfRounding::kZero),
      {"cvt.rna.satfinite.tf32.f32", TfOf<TfRounding::kAway, false, true>, "da"},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
