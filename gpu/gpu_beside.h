// SPDX-License-Identifier: Apache-2.0
// What a Gpu has besides when it works beside the processor and can't be stopped after any instruction: Run() may leave
// work on it, which goes on by itself. The executor waits for that before it says that it is off the GPU, and that is
// an overrun like any other (docs/cuda-backend.md, "gate").
#pragma once

namespace vgpud {

// Of a Gpu, which the executor asks for it (dynamic_cast). The thread of GpuGrid::Run.
class GpuBeside {
 public:
  virtual ~GpuBeside() = default;
  // Is work of this context on the GPU while no step runs?
  virtual bool Busy() const = 0;
  // Returns when there is none: also one that never ends is waited for.
  virtual void WaitUntilIdle() = 0;
};

}  // namespace vgpud
