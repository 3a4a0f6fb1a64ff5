// SPDX-License-Identifier: Apache-2.0
// Inst::aux of wgmma.mma_async. Inst::imm is N and, where A is sparse, the selector of its metadata behind it.
#pragma once

#include <cstdint>

namespace vgpud::soft {

enum WgmmaFlag : uint8_t {
  kSharedA = 1,     // A is in shared memory, else in registers
  kByKA = 2,        // A lies by k in shared memory, and
  kByKB = 4,        // B
  kNegativeA = 8,   // the elements of A change their sign, and
  kNegativeB = 16,  // those of B
  kSaturates = 32,  // sums of integers stay within theirs
};
inline constexpr uint32_t kWgmmaMostN = 256;
inline constexpr uint32_t kWgmmaColumns = 0xffff;  // the bits of Inst::imm that have N
inline constexpr uint32_t kWgmmaRegistersA = 4;

}  // namespace vgpud::soft
