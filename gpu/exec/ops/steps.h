// SPDX-License-Identifier: Apache-2.0
// What the GPU thread does for an operation, in steps of at most 64 KiB or one budget of warp instructions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gpu/exec/channel/op.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

struct StepResult {
  bool done = false;
  bool stopped = false;  // its kernel has left, as the stop word said
  bool fault = false;    // poisons the context
  CuStatus status = CuStatus::kSuccess;
  std::string text;
  uint64_t warp_instructions = 0;
  uint64_t short_of = 0;  // bytes of host memory without which it gets nowhere
};

// Advances `op` by at most `budget` warp instructions or 64 KiB. `behind`: launches that may begin when it has ended
// (AsyncWork). On the GPU only, by one thread; nobody else uses `gpu` and these operations.
StepResult RunStep(Gpu& gpu, Op& op, std::span<Op* const> behind, const StopWord& stop, uint64_t budget);

}  // namespace vgpud::exec
