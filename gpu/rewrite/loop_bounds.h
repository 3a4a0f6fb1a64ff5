// SPDX-License-Identifier: Apache-2.0
// The loops of one function: how often each goes round.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/ptx/ir.h"
#include "gpu/rewrite/bound.h"
#include "gpu/rewrite/flow.h"

namespace vgpud::rewrite {

class LoopBounds {
 public:
  LoopBounds(const ptx::Function& function, Budget& budget);

  // Terms and loops, and in loops_of() which of them each instruction is in. False: not known of one.
  bool Run(Bound& bound);
  const std::vector<uint32_t>& loops_of(uint32_t instruction) const { return loops_of_[instruction]; }

 private:
  struct Range {
    uint32_t first, last;  // the branch back
  };
  // It goes on as long as `counter` compared with `end` is so. `type` as of the instruction: s32.
  struct Condition {
    uint32_t counter;
    Test test;
    const ptx::Operand* end;
    uint32_t at;  // the instruction
    std::string_view type;
  };
  const ptx::Instruction* LastWrite(uint32_t reg, uint32_t end) const;
  std::optional<Condition> ConditionOf(uint32_t branch) const;
  std::optional<Rounds> RoundsOf(const Range& range);
  std::optional<std::vector<uint32_t>> Begins(const Range& range, uint32_t reg);
  bool SkipsEnd(const Range& range, const Condition& condition) const;
  bool Reaches(uint32_t from, uint32_t to) const;
  std::optional<uint32_t> WriterOf(uint32_t reg, uint32_t at) const;
  std::optional<uint32_t> TermOf(const ptx::Operand& operand, uint32_t at, int depth);
  std::optional<uint32_t> TermOfInstruction(uint32_t index, int depth);
  uint32_t Add(const Term& term);

  const ptx::Function& function_;
  const std::vector<ptx::Instruction>& code_;
  Flow flow_;
  Budget& budget_;
  std::vector<Range> ranges_;
  std::vector<std::vector<uint32_t>> writers_;  // by register
  std::vector<bool> alive_;                     // registers at the begin: they may be read before they are written
  std::vector<std::vector<uint32_t>> loops_of_;
  std::vector<Term> terms_;
  std::map<uint32_t, uint32_t> term_of_;  // instruction to term
};

}  // namespace vgpud::rewrite
