// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/ir.h"

#include <array>

namespace vgpud::ptx {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  uint32_t bytes;
};

// In the order of the enum; kNone has no name.
constexpr std::array kTypes = {
    TypeRow{Type::kNone, "", 0},
    TypeRow{Type::kB8, "b8", 1},
    TypeRow{Type::kB16, "b16", 2},
    TypeRow{Type::kB32, "b32", 4},
    TypeRow{Type::kB64, "b64", 8},
    TypeRow{Type::kB128, "b128", 16},
    TypeRow{Type::kU8, "u8", 1},
    TypeRow{Type::kU16, "u16", 2},
    TypeRow{Type::kU32, "u32", 4},
    TypeRow{Type::kU64, "u64", 8},
    TypeRow{Type::kS8, "s8", 1},
    TypeRow{Type::kS16, "s16", 2},
    TypeRow{Type::kS32, "s32", 4},
    TypeRow{Type::kS64, "s64", 8},
    TypeRow{Type::kF16, "f16", 2},
    TypeRow{Type::kF16x2, "f16x2", 4},
    TypeRow{Type::kBf16, "bf16", 2},
    TypeRow{Type::kBf16x2, "bf16x2", 4},
    TypeRow{Type::kTf32, "tf32", 4},
    TypeRow{Type::kE4m3, "e4m3", 1},
    TypeRow{Type::kE5m2, "e5m2", 1},
    TypeRow{Type::kE4m3x2, "e4m3x2", 2},
    TypeRow{Type::kE5m2x2, "e5m2x2", 2},
    TypeRow{Type::kE2m3x2, "e2m3x2", 2},
    TypeRow{Type::kE3m2x2, "e3m2x2", 2},
    TypeRow{Type::kE2m1x2, "e2m1x2", 1},
    TypeRow{Type::kUe8m0x2, "ue8m0x2", 2},
    TypeRow{Type::kU16x2, "u16x2", 4},
    TypeRow{Type::kS16x2, "s16x2", 4},
    TypeRow{Type::kF32, "f32", 4},
    TypeRow{Type::kF32x2, "f32x2", 8},
    TypeRow{Type::kF64, "f64", 8},
    TypeRow{Type::kPred, "pred", 0},
    TypeRow{Type::kTexref, "texref", 8},
    TypeRow{Type::kSamplerref, "samplerref", 8},
    TypeRow{Type::kSurfref, "surfref", 8},
};

constexpr bool EveryRowIsAtItsIndex() {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (static_cast<size_t>(kTypes[i].type) != i) return false;
  return true;
}
static_assert(EveryRowIsAtItsIndex());

}  // namespace

uint32_t SizeOf(Type type) { return kTypes[static_cast<size_t>(type)].bytes; }

Type TypeFromName(std::string_view name) {
  for (size_t i = 1; i < kTypes.size(); ++i)
    if (kTypes[i].name == name) return kTypes[i].type;
  return Type::kNone;
}

}  // namespace vgpud::ptx
