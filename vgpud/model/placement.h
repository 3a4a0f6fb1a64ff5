// SPDX-License-Identifier: Apache-2.0
// The ways to say which GPU a new VF goes to. How each decides: placement/placement.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::daemon {

enum class Placement : uint8_t {
  kSpread,        // where the fewest VFs are
  kPack,          // where the least is left, so that other GPUs stay empty
  kMostFreeVram,  // where the most memory is left
  kNuma,          // at the NUMA node of the virtual machine, there where the most memory is left
};
inline constexpr Placement kDefaultPlacement = Placement::kSpread;
std::string_view NameOf(Placement placement);
std::vector<std::string> PlacementNames();
// The error names what there is that is near.
[[nodiscard]] Result<Placement> FindPlacement(std::string_view name);

}  // namespace vgpud::daemon
