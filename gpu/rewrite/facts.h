// SPDX-License-Identifier: Apache-2.0
// What the functions of a module do that matters to a rewriter, and what each kernel can reach.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/ptx/ir.h"

namespace vgpud::rewrite {

// Of one function, without what it calls.
struct Facts {
  std::string grid_wide;     // why its blocks can't be put off; "" = nothing
  bool reads_block = false;  // %ctaid or %nctaid
  bool indirect_calls = false;
  std::vector<uint32_t> callees;         // indices of functions with a body
  std::vector<uint32_t> shared;          // static .shared variables of the module that it names
  std::vector<uint32_t> dynamic_shared;  // .extern .shared
};

// A kernel with everything it may run.
struct Reach {
  std::vector<uint32_t> functions;  // without itself
  std::vector<uint32_t> shared;     // static .shared variables of the module, each once
  bool dynamic_shared = false;
  uint64_t static_shared_bytes = 0;  // at most, those in bodies included
  std::string grid_wide;
  bool too_large = false;  // looking was given up
};

class ModuleFacts {
 public:
  explicit ModuleFacts(const ptx::Module& module);
  const Facts& of(uint32_t function) const { return facts_[function]; }
  // Why no kernel of this module may be touched; "" = they may.
  const std::string& whole() const { return whole_; }
  // Each call uses up some of Limits::kReachSteps.
  Reach ReachOf(uint32_t kernel);

 private:
  void Look(const ptx::Function& function, Facts& facts);
  void LookAt(const ptx::Instruction& instruction, const ptx::Operand& operand, Facts& facts);

  const ptx::Module& module_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  std::vector<Facts> facts_;
  std::vector<uint32_t> seen_;  // by function: the kernel + 1 that saw it last
  std::string whole_;
  uint64_t steps_left_;
};

// The component, 0 to 2, if `operand` is %ctaid or %nctaid; *grid: it is the latter.
std::optional<uint32_t> BlockComponent(const ptx::Operand& operand, bool* grid);

// Calls `visit` for `operand` and everything in it.
template <class Visit>
void ForEach(const ptx::Operand& operand, const Visit& visit) {
  visit(operand);
  for (const ptx::Operand& element : operand.elements) ForEach(element, visit);
}

}  // namespace vgpud::rewrite
