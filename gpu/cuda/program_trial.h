// SPDX-License-Identifier: Apache-2.0
// A program's life on the GPU, tried where guests' programs run: in an executor that is confined and in its jail.
#pragma once

#include <string>

#include "base/result.h"
#include "gpu/cuda/cuda_backend.h"

namespace vgpud::driver {

// As --test-rung has it.
inline constexpr char kProgramTrial[] = "program";

// Memory, the compiler, a kernel, copies, and the reset of the context behind them; then all of it once more. An error
// names the step.
[[nodiscard]] Result<std::string> TryProgram(const CudaBackend& backend);

}  // namespace vgpud::driver
