// SPDX-License-Identifier: Apache-2.0
// A kernel whose threads end after a known number of instructions, a part of its blocks at a time: none of it can be
// stopped, but there is never more of it on the GPU than is done soon (docs/preemption-rewrite.md, "Pieces").
#pragma once

#include <deque>
#include <vector>

#include "gpu/cuda/lane_grid.h"
#include "gpu/cuda/lane_wait.h"
#include "gpu/cuda/module/cuda_module.h"
#include "gpu/cuda/printed.h"
#include "gpu/cuda/rung.h"
#include "gpu/rewrite/turns.h"

namespace vgpud::driver {

// Blocks of the next piece, by how long the last one took. Pure.
uint64_t NextPieceBlocks(uint64_t blocks, uint64_t took_ns);

class PieceGrid final : public LaneGrid {
 public:
  // Its first piece begins: the caller has the GPU. `launch` has pieces, and CheckLaunch and
  // WhyNotInTurns (rung.h) had nothing to say. What is named outlives the grid.
  static GpuResult<std::unique_ptr<GpuGrid>> Launch(const Card& card, Lanes& lanes, Printed& printed,
                                                    const Kernel& kernel, const Short& launch, const LaunchShape& shape,
                                                    std::span<const std::byte> params);
  ~PieceGrid() override;

  // `budget` is no measure here, as in CudaGrid. kStopped: no piece of it runs any more, and there is something left.
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  std::optional<Place> Behind() const override { return std::nullopt; }
  bool FollowAgain(const Place&) override { return false; }

 private:
  struct Piece {
    Lane lane;
    uint64_t launched_ns;
    uint64_t waits;  // of the lanes, then
    uint64_t blocks;
  };

  PieceGrid(const Card& card, Lanes& lanes, Printed& printed, const Kernel& kernel, const Short& launch,
            const LaunchShape& shape, std::span<const std::byte> params);
  GpuResult<void> Prepare();
  // Behind those that run.
  GpuResult<void> Begin();
  GpuResult<void> End(Status status);
  void Abandon();

  const Card& card_;
  Lanes& lanes_;
  Printed& printed_;
  const Kernel& kernel_;
  const Short launch_;
  const LaunchShape shape_;
  std::vector<std::byte> params_;
  rewrite::GridTurns turns_;
  std::deque<Piece> pieces_;
  uint64_t begun_ns_ = 0, begun_waits_ = 0;
  LaneWait wait_;
};

}  // namespace vgpud::driver
