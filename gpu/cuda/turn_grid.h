// SPDX-License-Identifier: Apache-2.0
// A kernel that leaves the GPU by itself when its turn is over, and is launched again for the blocks that are left
// (docs/preemption-rewrite.md). With a room for them, blocks that run leave too, and go on from where they were.
#pragma once

#include <vector>

#include "gpu/cuda/cuda_module.h"
#include "gpu/cuda/lane_wait.h"
#include "gpu/cuda/lanes.h"
#include "gpu/cuda/printed.h"
#include "gpu/cuda/slot_rooms.h"
#include "gpu/cuda/stops.h"
#include "gpu/rewrite/turns.h"

namespace vgpud::driver {

// What a context's kernels share. Everything named outlives them.
struct TurnHouse {
  const Card& card;
  Lanes& lanes;
  Printed& printed;
  Stops& stops;
  SlotRooms& rooms;
};

class TurnGrid final : public GpuGrid {
 public:
  // Its first turn begins: the caller has the GPU. The kernel has `in_turns`, the word of `house.stops` is prepared,
  // and CheckLaunch and WhyNotInTurns (rung.h) had nothing to say. `room`: for `slots` blocks, of `house.rooms`; it
  // goes back there, also after an error.
  static GpuResult<std::unique_ptr<GpuGrid>> Launch(const TurnHouse& house, const Kernel& kernel,
                                                    const LaunchShape& shape, std::span<const std::byte> params,
                                                    std::optional<SlotRoom> room, uint32_t slots);
  ~TurnGrid() override;

  // `budget` is no measure here, as in CudaGrid. kStopped: no turn of it runs any more, and there is something left.
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  bool holds_blocks() const override { return false; }
  // The driver does not tell.
  uint64_t warp_instructions() const override { return 0; }

 private:
  TurnGrid(const TurnHouse& house, const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params,
           std::optional<SlotRoom> room, uint32_t slots);
  // The driver knows what the kernel takes, and the kernel where it tells its progress.
  GpuResult<void> Prepare();
  Status WriteControl();
  Status ReadControl();
  void Abandon();
  GpuResult<void> Begin();
  // The turn is over: what of the grid is left is known then.
  GpuResult<void> End(Status status);

  const TurnHouse house_;
  const Kernel& kernel_;
  const LaunchShape shape_;
  std::vector<std::byte> params_;
  rewrite::GridTurns turns_;
  rewrite::GridTurns::Launch launch_;
  std::optional<SlotRoom> room_;
  DevicePtr control_ = 0;
  Lane lane_;
  bool runs_ = false;
  LaneWait wait_;
};

}  // namespace vgpud::driver
