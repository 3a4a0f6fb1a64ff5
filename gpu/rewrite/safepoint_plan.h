// SPDX-License-Identifier: Apache-2.0
// Where a kernel can be left in the middle, and why that is exact (docs/preemption-rewrite.md, "Safepoints").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/ptx/ir.h"
#include "gpu/rewrite/facts.h"
#include "gpu/rewrite/flow.h"

namespace vgpud::rewrite {

// How the threads of a block come to leave together.
enum class Leaving : uint8_t {
  kAlone,     // each sees the stop word at a backward branch, saves itself and meets the others at a barrier
  kTogether,  // all of them ask at a backward branch that they come to equally often
  kBarriers,  // all of them ask at the program's own barriers
};

struct Safepoint {
  uint32_t instruction = 0;     // in front of which it is
  bool is_barrier = false;      // of the program
  bool polls = false;           // looks at the stop word; else it only joins those who have
  uint32_t weight = 0;          // instructions that a thread has run about since it was here last
  std::vector<uint32_t> alive;  // registers
};

struct SafepointPlan {
  Leaving leaving = Leaving::kAlone;
  uint32_t barrier = 0;  // its number: the program's one, where its barriers are safepoints
  bool waits_for_copies = false;
  std::vector<Safepoint> points;
  std::vector<std::string> reasons;  // loops without one
};

// What a kernel does together with the functions that it may call, for the question whether it can be left.
struct CalleeFacts {
  std::string opaque;  // an instruction that is not understood, or shared memory of a function
  std::string barrier;
  std::string collective;
  std::string loop;  // one that can wait for what another thread writes
  std::string other_loop;
};
CalleeFacts CalleesOf(const ptx::Module& module, const Reach& reach, Budget& budget);

// Nothing: it can't be left, for `reason`; "" = it has no loops, so its blocks end by themselves.
std::optional<SafepointPlan> PlanSafepoints(const ptx::Module& module, const ptx::Function& kernel, const Reach& reach,
                                            Budget& budget, std::string* reason);

}  // namespace vgpud::rewrite
