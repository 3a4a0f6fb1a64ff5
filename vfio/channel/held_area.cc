// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/held_area.h"

#include <fmt/core.h>

namespace vgpud::vfio {

Result<HeldArea> HeldArea::Hold(PieceBudget& budget, Area area) {
  const size_t left = budget.most_ - budget.used_;
  if (area.pieces.size() > left)
    return Fail(std::errc::not_enough_memory, fmt::format("pinned memory in {} pieces, the VF has {} of {} left",
                                                          area.pieces.size(), left, budget.most_));
  return HeldArea(budget, std::move(area));
}

}  // namespace vgpud::vfio
