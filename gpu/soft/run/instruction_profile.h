// SPDX-License-Identifier: Apache-2.0
// The profile mode: what forms of instructions the kernels of a context spend their time on. Programs that were decoded
// without it are run by another loop, and pay nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gpu/soft/memory/lock_ranks.h"

namespace vgpud::soft {

struct ProgramCode;

// Of one instruction of a program, or of one form.
struct InstructionCount {
  uint64_t executed = 0;  // warp instructions
  uint64_t ticks = 0;     // of the processor's clock, what looking at it takes included
};

// What a context executed. Thread-safe.
class InstructionProfile {
 public:
  struct Row {
    std::string form;  // opcode and modifiers as they were written, "fma.rn.f32"
    InstructionCount count;
  };
  InstructionProfile();
  // One entry per instruction of `code`, which was decoded for the profile.
  void Add(const ProgramCode& code, std::span<const InstructionCount> counts);
  // The form that took the most time first. Of each, what looking at the clock took is left out.
  std::vector<Row> Hottest() const;
  // Writes the first `most` of them to the log, a line each, and how many there are.
  void Log(size_t most) const;

 private:
  uint64_t clock_ticks_;  // of looking at the clock
  mutable Mutex mutex_{lock_rank::kProfile};
  std::map<std::string, InstructionCount, std::less<>> forms_ GUARDED_BY(mutex_);
};

// The processor's clock now.
uint64_t Ticks();

}  // namespace vgpud::soft
