// SPDX-License-Identifier: Apache-2.0
// Conversions of IEEE binary16 (PTX ISA "cvt").
#include "gpu/soft/number/half.h"

#include "gpu/soft/convert/convert.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

template <class D>
const Inst* FromHalf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  if (i->flags & kSat) {
    Each<D>(w, i, 0, [&](uint32_t l) { return Saturate(static_cast<D>(HalfToFloat(a[l]))); });
  } else {
    Map<D>(w, i, 0, [&](uint32_t l) { return Canonical(static_cast<D>(HalfToFloat(a[l]))); });
  }
  return i + 1;
}
// What ftz flushes is far below the smallest binary16.
template <class S, Rounding kHow>
const Inst* ToHalf(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  const bool sat = i->flags & kSat;
  if constexpr (sizeof(S) == 4 && kHow == Rounding::kNearest) {
    if (!sat) {
      Map<uint32_t>(w, i, 0, [&](uint32_t l) { return FloatToHalf(a[l]); });
      return i + 1;
    }
  }
  const uint8_t flags = i->flags;
  Each<uint16_t>(w, i, 0, [&](uint32_t l) {
    S v = a[l];
    if constexpr (sizeof(S) == 4) v = flags & kFtz ? Flush(v) : v;
    return FloatToHalf(static_cast<double>(sat ? Saturate(v) : v), kHow);
  });
  return i + 1;
}
template <Rounding kHow>
const Inst* FloatToHalfRelu(Warp& w, const Inst* i) {
  const float* a = In<float>(w, i, 1);
  if constexpr (kHow == Rounding::kNearest) {
    Map<uint32_t>(w, i, 0, [&](uint32_t l) { return FloatToHalf(a[l] <= 0 ? 0.0f : a[l]); });
  } else {
    Each<uint16_t>(w, i, 0, [&](uint32_t l) { return FloatToHalf(a[l] <= 0 ? 0.0 : static_cast<double>(a[l]), kHow); });
  }
  return i + 1;
}

// Conversions of binary16 to integers and to integral values.
template <class D, Integral kHow>
const Inst* HalfToInt(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  Each<D>(w, i, 0, [&](uint32_t l) { return ToInt<D, float, kHow>(HalfToFloat(a[l])); });
  return i + 1;
}
// 64-bit integers that double does not hold are beyond binary16.
template <class S, Rounding kHow>
const Inst* IntToHalf(Warp& w, const Inst* i) {
  const Slot<S>* a = In<S>(w, i, 1);
  const bool sat = i->flags & kSat;
  if constexpr (kHow == Rounding::kNearest) {
    if (!sat) {
      // Beyond it is infinity; f32 holds what is not.
      constexpr auto kMost = static_cast<S>(sizeof(S) > 2 ? 1 << 17 : kHighest<S>);
      constexpr auto kLeast = static_cast<S>(sizeof(S) > 2 && kIsSigned<S> ? -(1 << 17) : kLowest<S>);
      Map<uint32_t>(w, i, 0, [&](uint32_t l) {
        const S v = Value<S>(a[l]);
        const S near = v > kMost ? kMost : v < kLeast ? kLeast : v;
        return FloatToHalf(static_cast<float>(static_cast<int32_t>(near)));
      });
      return i + 1;
    }
  }
  Each<uint16_t>(w, i, 0, [&](uint32_t l) {
    const auto v = static_cast<double>(Value<S>(a[l]));
    return FloatToHalf(sat ? Saturate(v) : v, kHow);
  });
  return i + 1;
}
template <Integral kHow>
const Inst* HalfToIntegral(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  if (i->flags & kSat) {
    Each<uint32_t>(w, i, 0, [&](uint32_t l) { return FloatToHalf(Saturate(RoundTo<kHow>(HalfToFloat(a[l])))); });
  } else {
    Map<uint32_t>(w, i, 0, [&](uint32_t l) { return FloatToHalf(RoundTo<kHow>(HalfToFloat(a[l]))); });
  }
  return i + 1;
}
const Inst* HalfToHalf(Warp& w, const Inst* i) {
  const uint32_t* a = In<uint32_t>(w, i, 1);
  const bool sat = i->flags & kSat;
  Each<uint16_t>(w, i, 0, [&](uint32_t l) {
    return sat ? static_cast<uint16_t>(FloatToHalf(Saturate(HalfToFloat(a[l])))) : static_cast<uint16_t>(a[l]);
  });
  return i + 1;
}

}  // namespace

OpRows HalfRows() {
#define HALF_INT(t, T, d, a)                                                    \
  {"cvt.rni." t ".f16", HalfToInt<T, kNearest>, d "a", kTakesFtz | kTakesSat},  \
      {"cvt.rzi." t ".f16", HalfToInt<T, kZero>, d "a", kTakesFtz | kTakesSat}, \
      {"cvt.rmi." t ".f16", HalfToInt<T, kDown>, d "a", kTakesFtz | kTakesSat}, \
      {"cvt.rpi." t ".f16", HalfToInt<T, kUp>, d "a", kTakesFtz | kTakesSat},   \
      {"cvt.f16." t, IntToHalf<T, Rounding::kNearest>, "d" a, kTakesSat},       \
      {"cvt.rz.f16." t, IntToHalf<T, Rounding::kZero>, "d" a, kTakesSat},       \
      {"cvt.rm.f16." t, IntToHalf<T, Rounding::kDown>, "d" a, kTakesSat}, {     \
    "cvt.rp.f16." t, IntToHalf<T, Rounding::kUp>, "d" a, kTakesSat              \
  }
#define TO_HALF(s, S, a, traits)                                      \
  {"cvt.f16." s, ToHalf<S, Rounding::kNearest>, "d" a, traits},       \
      {"cvt.rz.f16." s, ToHalf<S, Rounding::kZero>, "d" a, traits},   \
      {"cvt.rm.f16." s, ToHalf<S, Rounding::kDown>, "d" a, traits}, { \
    "cvt.rp.f16." s, ToHalf<S, Rounding::kUp>, "d" a, traits          \
  }
  static const OpRow kRows[] = {
      {"cvt.f32.f16", FromHalf<float>, "da", kTakesFtz | kTakesSat},
      {"cvt.f64.f16", FromHalf<double>, "Da", kTakesSat},
      {"cvt.f16.f16", HalfToHalf, "da", kTakesSat},
      TO_HALF("f32", float, "a", kTakesFtz | kTakesSat),
      TO_HALF("f64", double, "A", kTakesSat),
      {"cvt.rn.relu.f16.f32", FloatToHalfRelu<Rounding::kNearest>, "da"},
      {"cvt.rz.relu.f16.f32", FloatToHalfRelu<Rounding::kZero>, "da"},
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
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
