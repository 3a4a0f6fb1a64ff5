// SPDX-License-Identifier: Apache-2.0
// Inst::aux of copies of boxes of tensors.
#pragma once

#include <cstdint>

namespace vgpud::soft {

inline constexpr uint8_t kTensorRank = 7;  // the bits that have it
inline constexpr uint8_t kTensorRows = 8;  // rows are named one by one (.tile::gather4, .tile::scatter4)
inline constexpr uint32_t kNamedRows = 4;

}  // namespace vgpud::soft
