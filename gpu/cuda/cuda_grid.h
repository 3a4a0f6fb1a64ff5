// SPDX-License-Identifier: Apache-2.0
// A kernel that the driver runs. On the rung "gate" (docs/cuda-backend.md) it can't be stopped: once it is launched it
// is waited for, past the end of the slice, which the scheduler counts as an overrun.
#pragma once

#include "gpu/cuda/lane_grid.h"
#include "gpu/cuda/lane_wait.h"
#include "gpu/cuda/module/cuda_module.h"
#include "gpu/cuda/printed.h"

namespace vgpud::driver {

// What the driver takes for granted of a launch, and a guest may have wrong. kInvalidValue.
GpuResult<void> CheckLaunch(const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params,
                            uint32_t max_dynamic_shared);
// `what` went wrong, in the driver's words.
GpuError KernelFailed(const Card& card, Status status, const Kernel& kernel, const char* what);

class CudaGrid final : public LaneGrid {
 public:
  // Launches it: the caller has the GPU, and CheckLaunch had nothing to say. Everything named outlives the grid.
  // `place`: behind what is there.
  static GpuResult<std::unique_ptr<GpuGrid>> Launch(const Card& card, Lanes& lanes, Printed& printed,
                                                    const Kernel& kernel, const LaunchShape& shape,
                                                    std::span<const std::byte> params, uint32_t max_dynamic_shared,
                                                    const std::optional<Place>& place = {});
  // May one more be launched behind others that can't be stopped? So many that they are done in part of a slice, as far
  // as it is known how long they take.
  static bool Fits(const Lanes& lanes, const Kernel& kernel, const LaunchShape& shape);
  ~CudaGrid() override;

  // `budget` is no measure here: kYield after about a tenth of a millisecond, while the kernel goes on.
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  std::optional<Place> Behind() const override;
  bool FollowAgain(const Place&) override { return runs_; }

 private:
  CudaGrid(const Card& card, Lanes& lanes, Printed& printed, Lane lane, const Kernel& kernel, const LaunchShape& shape);
  GpuResult<Progress> End(Status status);
  void NoLongerRuns();

  const Card& card_;
  Lanes& lanes_;
  Printed& printed_;
  Lane lane_;
  const Kernel& kernel_;
  const uint64_t blocks_;
  const uint64_t launched_ns_;
  const uint64_t waits_;      // of the lanes, when it was launched
  const uint64_t expect_ns_;  // it adds to what the lanes know of
  bool runs_ = true;
  LaneWait wait_;
};

}  // namespace vgpud::driver
