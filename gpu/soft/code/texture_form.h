// SPDX-License-Identifier: Apache-2.0
// What an instruction on a texture or surface says, packed into Inst::imm. Such instructions have more operands than an
// Inst has room for: the results stand in the instruction itself, the sources in carriers behind it, kPerCarrier each.
#pragma once

#include <cstdint>

namespace vgpud::soft {

enum class Detail : uint8_t { kBase, kLevel, kGradient };
enum class Outside : uint8_t { kTrap, kClamp, kZero };

struct TextureForm {
  uint8_t carriers = 0;
  uint8_t axes = 1;  // coordinates, for cubes three
  bool layered = false;
  bool integer = false;              // coordinates are .s32
  Detail detail = Detail::kBase;     // tex
  uint8_t count = 4;                 // tld4: component; suld, sust: elements; txq, suq: TextureQuery
  uint8_t bytes = 4;                 // suld, sust, sured: of one element
  Outside outside = Outside::kTrap;  // suld, sust, sured
};
static_assert(sizeof(TextureForm) == 8);

enum class TextureQuery : uint8_t { kWidth, kHeight, kDepth, kType, kOrder, kNormalized, kLayers, kLevels, kSamples };

inline constexpr uint8_t kPerCarrier = 5;

}  // namespace vgpud::soft
