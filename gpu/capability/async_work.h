// SPDX-License-Identifier: Apache-2.0
// A GPU that works beside the processor: kernels may still run when Run() has returned, and can begin one after the
// other without a step in between. The thread that calls Run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gpu/gpu.h"

namespace vgpud {

class AsyncWork {
 public:
  virtual ~AsyncWork() = default;
  // Is work of this context on the GPU while no step runs?
  virtual bool Busy() const = 0;
  // Returns when there is none. It also waits for a kernel that never ends.
  virtual void WaitUntilIdle() = 0;
  // Launches a kernel that begins as soon as `before`, the launch in front of it in its stream, has ended, without a
  // step. `grid`: nullptr, or what an earlier call made of it. False: not now; the caller launches it when it comes
  // first. Its steps come then and not before, also when it was launched here.
  virtual bool LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                            const LaunchShape& shape, std::span<const std::byte> params,
                            uint32_t max_dynamic_shared) = 0;
};

}  // namespace vgpud
