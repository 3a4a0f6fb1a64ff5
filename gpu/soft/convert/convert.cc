// SPDX-License-Identifier: Apache-2.0
// All of cvt between integers, f32 and f64.
#include "gpu/soft/convert/convert.h"

namespace vgpud::soft::VGPUD_ISA {

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
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
