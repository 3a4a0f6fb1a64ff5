// SPDX-License-Identifier: Apache-2.0
// PTX to PTX whose kernels can be taken off a GPU and put back (docs/preemption-rewrite.md). Pure: text in, text out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/rewrite/plan.h"

namespace vgpud::rewrite {

using ThreadBounds = std::map<std::string, uint32_t, std::less<>>;

struct Options {
  Rung best = Rung::kSafepoints;  // nothing beyond is tried
  // A thread looks at the stop word when it has run about so many instructions in loops since it last did; 0: at each
  // safepoint.
  uint32_t poll_after = 1024;
  // A kernel that can be stopped gets a name of its own (KernelPlan::entry), and the program's kernel stays beside it,
  // with the same variables: for launches that can't be done in turns.
  bool keep_originals = false;
  // Kernels whose threads all end after a number of instructions that is known are launched in pieces
  // (KernelPlan::pieces): that costs each thread three instructions for each axis, and no ticket.
  bool pieces = false;
  // Kernels that get a bound of so many threads in a block (.maxntid), where the program has none: the compiler then
  // keeps to the registers that such blocks can have.
  const ThreadBounds* most_threads = nullptr;
};

struct Rewritten {
  std::string text;
  std::vector<KernelPlan> kernels;  // all with a body, in the order of the text
};

// Any bytes are safe to pass in. The text means what `text` means when each kernel is launched as its plan says
// (gpu/rewrite/turns.h); a kernel of Rung::kNone is launched as ever. `text` must be a whole program: nothing is linked
// to it. Time and memory are bounded (limits.h).
// Errors: those of ptx::Parse, whose author should be asked then what to do with the text.
[[nodiscard]] GpuResult<Rewritten> Rewrite(std::string_view text, const Options& options = {});

}  // namespace vgpud::rewrite
