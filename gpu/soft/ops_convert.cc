// cvt (PTX ISA "Data Movement and Conversion: cvt") and arithmetic of f16.
#include "gpu/soft/ops_common.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class T>
inline constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
inline constexpr T kLowest = kSigned<T> ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T>
inline constexpr T kHighest = static_cast<T>(~kLowest<T>);
template <>
inline constexpr int32_t kLowest<int32_t> = INT32_MIN;
template <>
inline constexpr int64_t kLowest<int64_t> = INT64_MIN;

template <class D, class S>
const Inst* IntToInt(Warp& w, const Inst* i) {
  const Slot<S>* a = In<S>(w, i, 1);
  if (i->flags & kSat) {
    Each<D>(w, i, 0, [&](uint32_t l) {
      const auto v = static_cast<__int128>(Value<S>(a[l]));
      if (v < static_cast<__int128>(kLowest<D>)) return kLowest<D>;
      if (v > static_cast<__int128>(kHighest<D>)) return kHighest<D>;
      return static_cast<D>(v);
    });
  } else {
    Map<D>(w, i, 0, [&](uint32_t l) { return static_cast<D>(Value<S>(a[l])); });
  }
  return i + 1;
}

// The current rounding mode of the CPU applies.
template <class D, class S>
const Inst* IntToFloat(Warp& w, const Inst* i) {
  const Slot<S>* a = In<S>(w, i, 1);
  if (i->flags & kSat) {
    Each<D>(w, i, 0, [&](uint32_t l) { return Saturate(static_cast<D>(Value<S>(a[l]))); });
  } else {
    Map<D>(w, i, 0, [&](uint32_t l) { return static_cast<D>(Value<S>(a[l])); });
  }
  return i + 1;
}

// Rounding to an integral value.
enum Integral { kNearest, kZero, kDown, kUp };
template <Integral kHow>
ALWAYS double RoundTo(double v) {
  if constexpr (kHow == kNearest) return __builtin_nearbyint(v);
  if constexpr (kHow == kZero) return __builtin_trunc(v);
  if constexpr (kHow == kDown) return __builtin_floor(v);
  return __builtin_ceil(v);
}
template <Integral kHow>
ALWAYS float RoundTo(float v) {
  if constexpr (kHow == kNearest) return __builtin_nearbyintf(v);
  if constexpr (kHow == kZero) return __builtin_truncf(v);
  if constexpr (kHow == kDown) return __builtin_floorf(v);
  return __builtin_ceilf(v);
}

// Out of range saturates. NaN is 0, but the lowest value (s64) or 2^63 (u64) where a 64-bit type is involved.
template <class D, class S, Integral kHow>
const Inst* FloatToInt(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  const bool ftz = i->flags & kFtz;
  constexpr double kOver = sizeof(D) == 8 ? (kSigned<D> ? 0x1p63 : 0x1p64) : static_cast<double>(kHighest<D>) + 1.0;
  constexpr bool kWide = sizeof(D) == 8 || sizeof(S) == 8;
  constexpr D kNan = kWide && sizeof(D) >= 4 ? static_cast<D>(D(1) << (8 * sizeof(D) - 1)) : D(0);
  const auto convert = [&](uint32_t l) {
    S v = a[l];
    if constexpr (sizeof(S) == 4) v = ftz ? Flush(v) : v;
    const double r = static_cast<double>(RoundTo<kHow>(v));
    if (r != r) return kNan;
    if (r >= kOver) return kHighest<D>;
    if (r <= static_cast<double>(kLowest<D>)) return kLowest<D>;
    return static_cast<D>(r);
  };
  Each<D>(w, i, 0, convert);
  return i + 1;
}

template <class T, Integral kHow>
const Inst* FloatToIntegral(Warp& w, const Inst* i) {
  const T* a = In<T>(w, i, 1);
  const uint8_t flags = i->flags;
  Map<T>(w, i, 0, [&](uint32_t l) {
    T v = a[l];
    if constexpr (sizeof(T) == 4) v = flags & kFtz ? Flush(v) : v;
    v = RoundTo<kHow>(v);
    return flags & kSat ? Saturate(v) : Canonical(v);
  });
  return i + 1;
}

template <class D, class S>
const Inst* FloatToFloat(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  const uint8_t flags = i->flags;
  Map<D>(w, i, 0, [&](uint32_t l) {
    S v = a[l];
    if constexpr (sizeof(S) == 4) v = flags & kFtz ? Flush(v) : v;
    D r = static_cast<D>(v);
    if constexpr (sizeof(D) == 4) r = flags & kFtz ? Flush(r) : r;
    return flags & kSat ? Saturate(r) : Canonical(r);
  });
  return i + 1;
}

// IEEE binary16.
ALWAYS float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 31;
  const uint32_t fraction = h & 0x3ffu;
  if (exponent == 31) return Bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float v = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -v : v;
  }
  return Bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
// To the nearest, ties to even, or toward zero.
ALWAYS uint16_t FloatToHalf(double v, bool to_zero) {
  const uint64_t b = Bits<uint64_t>(v);
  const auto sign = static_cast<uint32_t>(b >> 48) & 0x8000u;
  const double size = v < 0 ? -v : v;
  if (v != v) return 0x7fff;
  if (to_zero ? size == __builtin_inf() : size >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  if (size >= 65504.0 && to_zero) return static_cast<uint16_t>(sign | 0x7bff);
  if (size == 0) return static_cast<uint16_t>(sign);
  int exponent = static_cast<int>(Bits<uint64_t>(size) >> 52) - 1023;
  if (exponent < -14) exponent = -14;
  // In units of the last place: the power of two is exact.
  const double units = size * Bits<double>(static_cast<uint64_t>(1023 + 10 - exponent) << 52);
  auto whole = static_cast<uint32_t>(units);
  const double rest = units - whole;
  if (!to_zero && (rest > 0.5 || (rest == 0.5 && (whole & 1)))) ++whole;
  const uint32_t base = static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (base + whole));
}
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

}  // namespace

OpRows ConvertRows() {
#define INT_INT(d, D, s, S, sig) \
  { "cvt." d "." s, IntToInt<D, S>, sig, kTakesSat }
#define INT_INTS(d, D, w)                                                                                         \
  INT_INT(d, D, "u8", uint8_t, w "a"), INT_INT(d, D, "s8", int8_t, w "a"), INT_INT(d, D, "u16", uint16_t, w "a"), \
      INT_INT(d, D, "s16", int16_t, w "a"), INT_INT(d, D, "u32", uint32_t, w "a"),                                \
      INT_INT(d, D, "s32", int32_t, w "a"), INT_INT(d, D, "u64", uint64_t, w "A"),                                \
      INT_INT(d, D, "s64", int64_t, w "A")
#define INT_FLOAT(s, S, sig)                                                        \
  {"cvt.f32." s, IntToFloat<float, S>, "d" sig, kRounds | kTakesSat | kTakesFtz}, { \
    "cvt.f64." s, IntToFloat<double, S>, "D" sig, kRounds | kTakesSat               \
  }
#define FLOAT_INT(d, D, w)                                                              \
  {"cvt.rni." d ".f32", FloatToInt<D, float, kNearest>, w "a", kTakesFtz | kTakesSat},  \
      {"cvt.rzi." d ".f32", FloatToInt<D, float, kZero>, w "a", kTakesFtz | kTakesSat}, \
      {"cvt.rmi." d ".f32", FloatToInt<D, float, kDown>, w "a", kTakesFtz | kTakesSat}, \
      {"cvt.rpi." d ".f32", FloatToInt<D, float, kUp>, w "a", kTakesFtz | kTakesSat},   \
      {"cvt.rni." d ".f64", FloatToInt<D, double, kNearest>, w "A", kTakesSat},         \
      {"cvt.rzi." d ".f64", FloatToInt<D, double, kZero>, w "A", kTakesSat},            \
      {"cvt.rmi." d ".f64", FloatToInt<D, double, kDown>, w "A", kTakesSat}, {          \
    "cvt.rpi." d ".f64", FloatToInt<D, double, kUp>, w "A", kTakesSat                   \
  }
#define INTEGRAL(t, T, sig)                                                          \
  {"cvt.rni." t "." t, FloatToIntegral<T, kNearest>, sig, kTakesFtz | kTakesSat},    \
      {"cvt.rzi." t "." t, FloatToIntegral<T, kZero>, sig, kTakesFtz | kTakesSat},   \
      {"cvt.rmi." t "." t, FloatToIntegral<T, kDown>, sig, kTakesFtz | kTakesSat}, { \
    "cvt.rpi." t "." t, FloatToIntegral<T, kUp>, sig, kTakesFtz | kTakesSat          \
  }
  static const OpRow kRows[] = {
      INT_INTS("u8", uint8_t, "d"),
      INT_INTS("s8", int8_t, "d"),
      INT_INTS("u16", uint16_t, "d"),
      INT_INTS("s16", int16_t, "d"),
      INT_INTS("u32", uint32_t, "d"),
      INT_INTS("s32", int32_t, "d"),
      INT_INTS("u64", uint64_t, "D"),
      INT_INTS("s64", int64_t, "D"),
      INT_FLOAT("u8", uint8_t, "a"),
      INT_FLOAT("s8", int8_t, "a"),
      INT_FLOAT("u16", uint16_t, "a"),
      INT_FLOAT("s16", int16_t, "a"),
      INT_FLOAT("u32", uint32_t, "a"),
      INT_FLOAT("s32", int32_t, "a"),
      INT_FLOAT("u64", uint64_t, "A"),
      INT_FLOAT("s64", int64_t, "A"),
      FLOAT_INT("u8", uint8_t, "d"),
      FLOAT_INT("s8", int8_t, "d"),
      FLOAT_INT("u16", uint16_t, "d"),
      FLOAT_INT("s16", int16_t, "d"),
      FLOAT_INT("u32", uint32_t, "d"),
      FLOAT_INT("s32", int32_t, "d"),
      FLOAT_INT("u64", uint64_t, "D"),
      FLOAT_INT("s64", int64_t, "D"),
      INTEGRAL("f32", float, "da"),
      INTEGRAL("f64", double, "DA"),
      {"cvt.f32.f32", FloatToFloat<float, float>, "da", kTakesFtz | kTakesSat},
      {"cvt.f64.f64", FloatToFloat<double, double>, "DA", kTakesSat},
      {"cvt.f32.f64", FloatToFloat<float, double>, "dA", kRounds | kTakesFtz | kTakesSat},
      {"cvt.f64.f32", FloatToFloat<double, float>, "Da", kTakesFtz | kTakesSat},
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
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
