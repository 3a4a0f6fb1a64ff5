// SPDX-License-Identifier: Apache-2.0
// Those conversions that kernels are full of, again, for the instruction set at hand.
#include "gpu/soft/convert/convert.h"

namespace vgpud::soft::VGPUD_ISA {

OpRows CastRows() {
  static const OpRow kRows[] = {
      {"cvt.s64.s32", IntToInt<int64_t, int32_t>, "Da", kTakesSat},
      {"cvt.u64.u32", IntToInt<uint64_t, uint32_t>, "Da", kTakesSat},
      {"cvt.u32.u64", IntToInt<uint32_t, uint64_t>, "dA", kTakesSat},
      {"cvt.u32.u16", IntToInt<uint32_t, uint16_t>, "da", kTakesSat},
      {"cvt.u32.u8", IntToInt<uint32_t, uint8_t>, "da", kTakesSat},
      {"cvt.s32.s16", IntToInt<int32_t, int16_t>, "da", kTakesSat},
      {"cvt.s32.s8", IntToInt<int32_t, int8_t>, "da", kTakesSat},
      {"cvt.u16.u32", IntToInt<uint16_t, uint32_t>, "da", kTakesSat},
      {"cvt.u16.u8", IntToInt<uint16_t, uint8_t>, "da", kTakesSat},
      {"cvt.f32.s32", IntToFloat<float, int32_t>, "da", kRounds | kTakesSat | kTakesFtz},
      {"cvt.f32.u32", IntToFloat<float, uint32_t>, "da", kRounds | kTakesSat | kTakesFtz},
      {"cvt.f64.s32", IntToFloat<double, int32_t>, "Da", kRounds | kTakesSat},
      {"cvt.f64.u32", IntToFloat<double, uint32_t>, "Da", kRounds | kTakesSat},
      {"cvt.f32.f64", FloatToFloat<float, double>, "dA", kRounds | kTakesFtz | kTakesSat},
      {"cvt.f64.f32", FloatToFloat<double, float>, "Da", kTakesFtz | kTakesSat},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
