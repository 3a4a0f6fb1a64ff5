// SPDX-License-Identifier: Apache-2.0
// A kernel that the driver runs. On the rung "gate" (docs/cuda-backend.md) it can't be stopped: once it is launched it
// is waited for, past the end of the slice, which the scheduler counts as an overrun.
#pragma once

#include "gpu/cuda/cuda_module.h"
#include "gpu/cuda/lane_wait.h"
#include "gpu/cuda/lanes.h"
#include "gpu/cuda/printed.h"

namespace vgpud::driver {

// What the driver takes for granted of a launch, and a guest may have wrong. kInvalidValue.
GpuResult<void> CheckLaunch(const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params,
                            uint32_t max_dynamic_shared);
// `what` went wrong, in the driver's words.
GpuError KernelFailed(const Card& card, Status status, const Kernel& kernel, const char* what);

class CudaGrid final : public GpuGrid {
 public:
  // Launches it: the caller has the GPU, and CheckLaunch had nothing to say. Everything named outlives the grid.
  static GpuResult<std::unique_ptr<GpuGrid>> Launch(const Card& card, Lanes& lanes, Printed& printed,
                                                    const Kernel& kernel, const LaunchShape& shape,
                                                    std::span<const std::byte> params, uint32_t max_dynamic_shared);
  ~CudaGrid() override;

  // `budget` is no measure here: kYield after about a tenth of a millisecond, while the kernel goes on.
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  bool holds_blocks() const override { return false; }
  // The driver does not tell.
  uint64_t warp_instructions() const override { return 0; }

 private:
  CudaGrid(const Card& card, Lanes& lanes, Printed& printed, Lane lane, const Kernel& kernel)
      : card_(card), lanes_(lanes), printed_(printed), lane_(lane), kernel_(kernel) {
    ++lanes_.ends.running_by_gate;
  }
  GpuResult<Progress> End(Status status);

  const Card& card_;
  Lanes& lanes_;
  Printed& printed_;
  Lane lane_;
  const Kernel& kernel_;
  bool runs_ = true;
  LaneWait wait_;
};

}  // namespace vgpud::driver
