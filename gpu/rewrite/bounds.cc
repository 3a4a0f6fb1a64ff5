// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/bounds.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "gpu/rewrite/loop_bounds.h"
#include "gpu/rewrite/opcodes.h"

namespace vgpud::rewrite {
namespace {

// What the driver's own functions take: they copy some words, or search a list. Guessed.
constexpr struct {
  std::string_view name;
  uint64_t instructions;
} kExterns[] = {{"vprintf", 256}, {"malloc", 512}, {"free", 512}, {"__assertfail", 256}};

class Bounds {
 public:
  Bounds(const ptx::Module& module, uint64_t at_most, Budget& budget)
      : module_(module), at_most_(at_most), budget_(budget) {
    for (const auto& function : module.functions) by_name_.emplace(function->name, function.get());
  }

  Bound Of(const ptx::Function& function, int depth) {
    if (!budget_.Spend(2 * function.code.size() + 1)) return {};
    LoopBounds loops(function, budget_);
    Bound bound;
    if (!loops.Run(bound)) return {};
    std::map<std::vector<uint32_t>, CheckedSize> parts;
    for (uint32_t i = 0; i < function.code.size(); ++i) {
      const uint64_t each = OfInstruction(function.code[i], depth);
      if (each == 0) return {};
      parts[loops.loops_of(i)] += each;
    }
    for (const auto& [of, instructions] : parts) bound.parts.push_back({instructions.saturated(), of});
    return bound;
  }

 private:
  // Of a called one: a number, or 0.
  uint64_t OfFunction(const ptx::Function& function, int depth) {
    constexpr int kMostDepth = 32;
    const auto [known, fresh] = known_.emplace(&function, 0);
    if (!fresh) return known->second;  // 0 while it is looked at: it calls itself
    const Bound bound = depth > kMostDepth ? Bound() : Of(function, depth);
    const uint64_t most = bound.needs_launch() ? 0 : Evaluate(bound, {}, {1, 1, 1});
    return known_[&function] = most > at_most_ ? 0 : most;
  }

  uint64_t OfInstruction(const ptx::Instruction& instruction, int depth) {
    if (instruction.opcode == "nanosleep") return 0;
    if (instruction.opcode != "call") return 1;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.kind != ptx::Operand::Kind::kFunction) continue;
      for (const auto& row : kExterns)
        if (row.name == operand.name) return row.instructions;
      const auto found = by_name_.find(operand.name);
      if (found == by_name_.end() || found->second->is_extern) return 0;
      const uint64_t callee = OfFunction(*found->second, depth + 1);
      return callee == 0 ? 0 : callee + 1;
    }
    // By address any of them may be meant.
    if (!budget_.Spend(module_.functions.size())) return 0;
    uint64_t most = 1;
    for (const auto& function : module_.functions) {
      if (function->is_kernel || function->is_extern) continue;
      const uint64_t callee = OfFunction(*function, depth + 1);
      if (callee == 0) return 0;
      most = std::max(most, callee + 1);
    }
    return most;
  }

  const ptx::Module& module_;
  uint64_t at_most_;
  Budget& budget_;
  std::map<std::string_view, const ptx::Function*> by_name_;
  std::map<const ptx::Function*, uint64_t> known_;
};

}  // namespace

bool HasLoops(const ptx::Function& function) {
  for (uint32_t i = 0; i < function.code.size(); ++i) {
    bool back = false;
    if (FactsOf(function.code[i]).kind == OpKind::kBranch)
      ForEachTarget(function.code[i], [&](uint32_t target) { back |= target <= i; });
    if (back) return true;
  }
  return false;
}

Bound BoundOf(const ptx::Module& module, const ptx::Function& kernel, uint64_t at_most, Budget& budget) {
  if (!budget.Spend(module.functions.size())) return {};
  return Bounds(module, at_most, budget).Of(kernel, 0);
}

}  // namespace vgpud::rewrite
