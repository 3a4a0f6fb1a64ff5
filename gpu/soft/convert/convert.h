// SPDX-License-Identifier: Apache-2.0
// Handlers of cvt between integers, f32 and f64 (PTX ISA "Data Movement and Conversion: cvt").
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

template <class T>
inline constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
inline constexpr T kLowest = kIsSigned<T> ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T>
inline constexpr T kHighest = static_cast<T>(~kLowest<T>);
template <>
inline constexpr int32_t kLowest<int32_t> = INT32_MIN;
template <>
inline constexpr int64_t kLowest<int64_t> = INT64_MIN;

template <class D, class S>
static const Inst* IntToInt(Warp& w, const Inst* i) {
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
static const Inst* IntToFloat(Warp& w, const Inst* i) {
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

// Out of range saturates. NaN is 0, but only the top bit is set where a 64-bit type is involved.
template <class D, class S, Integral kHow>
ALWAYS D ToInt(S v) {
  constexpr double kOver = sizeof(D) == 8 ? (kIsSigned<D> ? 0x1p63 : 0x1p64) : static_cast<double>(kHighest<D>) + 1.0;
  constexpr bool kWide = sizeof(D) == 8 || sizeof(S) == 8;
  constexpr D kNan = kWide ? static_cast<D>(D(1) << (8 * sizeof(D) - 1)) : D(0);
  const double r = static_cast<double>(RoundTo<kHow>(v));
  if (r != r) return kNan;
  if (r >= kOver) return kHighest<D>;
  if (r <= static_cast<double>(kLowest<D>)) return kLowest<D>;
  return static_cast<D>(r);
}
template <class D, class S, Integral kHow>
static const Inst* FloatToInt(Warp& w, const Inst* i) {
  const S* a = In<S>(w, i, 1);
  const bool ftz = i->flags & kFtz;
  Each<D>(w, i, 0, [&](uint32_t l) {
    S v = a[l];
    if constexpr (sizeof(S) == 4) v = ftz ? Flush(v) : v;
    return ToInt<D, S, kHow>(v);
  });
  return i + 1;
}

template <class T, Integral kHow>
static const Inst* FloatToIntegral(Warp& w, const Inst* i) {
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
static const Inst* FloatToFloat(Warp& w, const Inst* i) {
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

}  // namespace vgpud::soft::VGPUD_ISA
