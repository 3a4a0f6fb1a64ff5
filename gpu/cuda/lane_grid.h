// SPDX-License-Identifier: Apache-2.0
// A kernel on a lane, and what may be launched behind it before it has ended: the GPU then goes on with the next one by
// itself, while the executor has not yet seen that the one before is done.
#pragma once

#include <optional>

#include "gpu/cuda/lanes.h"
#include "gpu/gpu.h"

namespace vgpud::driver {

// The GPU thread, with the card bound.
class LaneGrid : public GpuGrid {
 public:
  // nullopt: it is not on the GPU, or what is behind it might run before all of it has.
  virtual std::optional<Place> Behind() const = 0;
  // Is it on the GPU, or can be launched there again? For one that was launched behind another, in this turn or before.
  virtual bool FollowAgain(const Place& place) = 0;

  bool holds_blocks() const override { return false; }
  // The driver does not tell.
  uint64_t warp_instructions() const override { return 0; }
};

}  // namespace vgpud::driver
