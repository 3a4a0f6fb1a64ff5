// SPDX-License-Identifier: Apache-2.0
// A kernel that leaves the GPU by itself when its turn is over, and is launched again for the blocks that are left
// (docs/preemption-rewrite.md). With a room for them, blocks that run leave too, and go on from where they were.
#pragma once

#include <vector>

#include "gpu/cuda/lane_grid.h"
#include "gpu/cuda/lane_wait.h"
#include "gpu/cuda/module/cuda_module.h"
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

class TurnGrid final : public LaneGrid {
 public:
  // Its first turn begins: the caller has the GPU. The kernel has `in_turns`, the word of `house.stops` is prepared,
  // and CheckLaunch and WhyNotInTurns (rung.h) had nothing to say. `room`: for `slots` blocks, of `house.rooms`; it
  // goes back there, also after an error. `place`: behind what is there.
  static GpuResult<std::unique_ptr<GpuGrid>> Launch(const TurnHouse& house, const Kernel& kernel,
                                                    const LaunchShape& shape, std::span<const std::byte> params,
                                                    std::optional<SlotRoom> room, uint32_t slots,
                                                    const std::optional<Place>& place = {});
  ~TurnGrid() override;

  // `budget` is no measure here, as in CudaGrid. kStopped: no turn of it runs any more, and there is something left.
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  std::optional<Place> Behind() const override;
  bool FollowAgain(const Place& place) override;

 private:
  TurnGrid(const TurnHouse& house, const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params,
           std::optional<SlotRoom> room, uint32_t slots);
  // The driver knows what the kernel takes, and the kernel where it tells its progress.
  GpuResult<void> Prepare();
  Status WriteControl(bool behind);
  Status ReadControl();
  void Abandon();
  GpuResult<void> Begin(const std::optional<Place>& place);
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
  uint64_t launched_ns_ = 0, waits_ = 0;  // the lanes' then
  std::optional<GpuError> failed_;        // when it was to follow another one
  LaneWait wait_;
};

}  // namespace vgpud::driver
