// SPDX-License-Identifier: Apache-2.0
// Inst::aux of tcgen05.cp: the number of pieces of 16 bytes of a row, and a flag.
#pragma once

#include <cstdint>

namespace vgpud::soft {

inline constexpr uint8_t kCopiedPieces = 3;
inline constexpr uint8_t kCopiesToQuarters = 4;  // 32 rows, which each quarter of the lanes has

}  // namespace vgpud::soft
