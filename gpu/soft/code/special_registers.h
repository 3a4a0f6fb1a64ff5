// SPDX-License-Identifier: Apache-2.0
// Special registers of PTX and where their values come from.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/soft/code/inst.h"

namespace vgpud::soft {

inline constexpr uint32_t kMultiprocessors = 8;
// Bytes of shared memory that a block has for the system's headers (cooperative groups), behind its own.
inline constexpr uint32_t kReservedShared = 1 << 10;

struct SpecialRegister {
  std::string_view name;
  enum Where : uint8_t { kConstant, kLaneTable, kWarp, kGrid, kRead } where;
  uint64_t value;        // constant, lane table kind, or slot in its area
  const char* row = "";  // kRead: "@<row>.<bits>"
};
enum LaneTable : uint64_t { kLaneId, kMaskEq, kMaskLe, kMaskLt, kMaskGe, kMaskGt };

// nullptr if there is none of that name ("%tid.x").
const SpecialRegister* FindSpecialRegister(std::string_view name);
uint32_t LaneTableValue(const SpecialRegister& reg, uint32_t lane);

}  // namespace vgpud::soft
