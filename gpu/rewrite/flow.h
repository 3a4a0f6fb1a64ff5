// SPDX-License-Identifier: Apache-2.0
// How control flows in one function, and which registers are alive where.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/ptx/ir.h"

namespace vgpud::rewrite {

// Instructions [begin, end); only the last one may go elsewhere.
struct Block {
  uint32_t begin = 0;
  uint32_t end = 0;
  std::vector<uint32_t> to;  // blocks, each once; none = the thread leaves the function
  std::vector<uint32_t> from;
};

class Flow {
 public:
  explicit Flow(const ptx::Function& function);
  const std::vector<Block>& blocks() const { return blocks_; }
  uint32_t block_of(uint32_t instruction) const { return block_of_[instruction]; }
  // Branches to their own place or before it: each cycle has at least one.
  const std::vector<uint32_t>& back_branches() const { return back_branches_; }

 private:
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;
  std::vector<uint32_t> back_branches_;
};

// Calls `visit(index)` for each place that the branch may go to.
template <class Visit>
void ForEachTarget(const ptx::Instruction& branch, const Visit& visit) {
  for (const ptx::Operand& operand : branch.operands) {
    if (operand.kind == ptx::Operand::Kind::kLabel) visit(operand.index);
    for (const ptx::Operand& element : operand.elements)
      if (element.kind == ptx::Operand::Kind::kLabel) visit(element.index);
  }
}

// Steps that analyses may still take, all kernels of a module together.
class Budget {
 public:
  explicit Budget(uint64_t steps) : left_(steps) {}
  bool Spend(uint64_t steps) {
    if (steps > left_) return left_ = 0, false;
    left_ -= steps;
    return true;
  }

 private:
  uint64_t left_;
};

// The registers that are alive in front of each of `places` (instructions), ascending; more than are is possible. The
// carry flag counts as register number registers.size(). Nothing: the budget is used up.
std::optional<std::vector<std::vector<uint32_t>>> AliveBefore(const ptx::Function& function, const Flow& flow,
                                                              const std::vector<uint32_t>& places, Budget& budget);

}  // namespace vgpud::rewrite
