// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/safepoint_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "gpu/rewrite/limits.h"
#include "gpu/rewrite/opcodes.h"
#include "gpu/rewrite/uniform.h"

namespace vgpud::rewrite {
namespace {

std::string At(const ptx::Instruction& instruction, std::string_view what) {
  return fmt::format("line {}: {} ({})", instruction.line, what, instruction.opcode);
}
void Note(std::string& why, const ptx::Instruction& instruction, std::string_view what) {
  if (why.empty()) why = At(instruction, what);
}

bool IsBack(const ptx::Instruction& instruction, uint32_t index) {
  bool back = false;
  if (FactsOf(instruction).kind == OpKind::kBranch)
    ForEachTarget(instruction, [&](uint32_t target) { back |= target <= index; });
  return back;
}

// Why none of its registers, variables and names lets it be left anywhere.
std::string Unsavable(const ptx::Module& module, const ptx::Function& kernel, const Reach& reach) {
  constexpr uint64_t kMostLocal = 64 << 10;
  uint64_t local = 0;
  std::unordered_set<std::string_view> names;
  for (const ptx::Variable& variable : kernel.variables) {
    if (variable.depth != 1) return fmt::format("line {}: {} is declared within a block", variable.line, variable.name);
    if (variable.space != ptx::Space::kLocal && variable.space != ptx::Space::kShared)
      return fmt::format("line {}: {} is of a kind that can't be saved", variable.line, variable.name);
    if (variable.space == ptx::Space::kLocal) local += variable.bytes;
    names.insert(variable.name);
  }
  if (local > kMostLocal) return fmt::format("{} bytes of local memory are too many", local);
  for (const ptx::Param& param : kernel.body_params)
    if (param.depth == 1) return fmt::format("{}: a call's parameter that is there all the time", param.name);
  for (const ptx::Param& param : kernel.params) names.insert(param.name);
  for (const ptx::Register& reg : kernel.registers) names.insert(reg.name);
  for (const ptx::Variable& variable : module.variables)
    if (variable.space == ptx::Space::kShared && names.contains(variable.name))
      return fmt::format("{} is the name of two things", variable.name);
  (void)reach;
  return "";
}

class Planner {
 public:
  Planner(const ptx::Module& module, const ptx::Function& kernel, const Reach& reach, Budget& budget)
      : kernel_(kernel), flow_(kernel), budget_(budget), callees_(CalleesOf(module, reach, budget)) {
    unsavable_ = Unsavable(module, kernel, reach);
  }
  std::optional<SafepointPlan> Run(std::string* reason);

 private:
  void Look();
  bool FindPlaces();
  std::string Wrong(uint32_t instruction, const std::vector<uint32_t>& alive) const;
  const ptx::Instruction& code(uint32_t index) const { return kernel_.code[index]; }
  bool InUniform(uint32_t instruction) const { return uniform_[flow_.block_of(instruction)]; }
  uint32_t WeightOf(uint32_t instruction) const;
  bool HasCycle(uint32_t block, const std::vector<bool>& closed);
  std::optional<SafepointPlan> Alone();
  std::optional<SafepointPlan> Together();
  std::optional<SafepointPlan> AtBarriers();

  const ptx::Function& kernel_;
  Flow flow_;
  Budget& budget_;
  CalleeFacts callees_;
  std::string unsavable_;

  std::vector<uint32_t> barriers_;
  std::string opaque_, collective_;
  bool has_copies_ = false;
  bool waits_ = false;  // it reads what others may write, so its loops may wait for that
  // Of all barriers: one number, all threads; why not.
  std::string odd_barrier_;
  bool for_some_ = false;  // it is not even clear that all threads come to each of them
  uint32_t barrier_ = 0;
  std::vector<uint32_t> places_;  // backward branches, then barriers
  std::vector<std::vector<uint32_t>> alive_;
  std::vector<std::string> wrong_;  // by place: why it can't be a safepoint
  std::vector<bool> uniform_;
  bool barriers_uniform_ = false;
};

void Planner::Look() {
  for (uint32_t i = 0; i < kernel_.code.size(); ++i) {
    const ptx::Instruction& instruction = code(i);
    waits_ |= ReadsWhatOthersWrite(instruction) || FactsOf(instruction).kind == OpKind::kCall;
    switch (FactsOf(instruction).kind) {
      case OpKind::kOpaque:
        Note(opaque_, instruction, "what it keeps is not known");
        break;
      case OpKind::kCollective:
        Note(collective_, instruction, "threads of a warp work together");
        break;
      case OpKind::kAsync:
        has_copies_ = true;
        break;
      case OpKind::kBarrier: {
        const size_t first = HasModifier(instruction, "red") ? 1 : 0;
        const bool plain = instruction.operands.size() == 1 + 2 * first && instruction.operands.size() > first &&
                           instruction.operands[first].kind == ptx::Operand::Kind::kImmediate &&
                           instruction.operands[first].bits < 16;
        if (!plain) {
          Note(odd_barrier_, instruction, "a barrier for some threads only, or of an unknown number");
          for_some_ = true;
        } else if (!barriers_.empty() && instruction.operands[first].bits != barrier_) {
          Note(odd_barrier_, instruction, "barriers of several numbers");
        } else {
          barrier_ = static_cast<uint32_t>(instruction.operands[first].bits);
        }
        barriers_.push_back(i);
        break;
      }
      default:
        break;
    }
  }
}

// Why a thread can't be left in front of it.
std::string Planner::Wrong(uint32_t instruction, const std::vector<uint32_t>& alive) const {
  if (code(instruction).depth != 1) return At(code(instruction), "inside a block of its own");
  for (const uint32_t reg : alive) {
    if (reg == kernel_.registers.size()) return At(code(instruction), "the carry flag is in use");
    const ptx::Register& of = kernel_.registers[reg];
    if (of.depth != 1) return At(code(instruction), of.name + " is declared within a block");
    const uint32_t bytes = SizeOf(of.type);
    if (of.type != ptx::Type::kPred && bytes != 2 && bytes != 4 && bytes != 8)
      return At(code(instruction), of.name + " is of a size that can't be saved");
  }
  return "";
}

// Of a branch back: as far as it goes. Of a barrier, which may be in any loop: some.
uint32_t Planner::WeightOf(uint32_t instruction) const {
  constexpr uint32_t kOfBarrier = 64;
  if (FactsOf(code(instruction)).kind != OpKind::kBranch) return kOfBarrier;
  uint32_t first = instruction;
  ForEachTarget(code(instruction), [&](uint32_t target) { first = std::min(first, target); });
  return instruction - first + 1;
}

bool Planner::FindPlaces() {
  places_ = flow_.back_branches();
  places_.insert(places_.end(), barriers_.begin(), barriers_.end());
  if (places_.size() > Limits::kSafepoints) return false;
  auto alive = AliveBefore(kernel_, flow_, places_, budget_);
  auto uniform = UniformBlocks(kernel_, flow_, budget_);
  if (!alive || !uniform) return false;
  alive_ = std::move(*alive);
  uniform_ = std::move(*uniform);
  for (size_t i = 0; i < places_.size(); ++i) wrong_.push_back(Wrong(places_[i], alive_[i]));
  barriers_uniform_ = callees_.barrier.empty() && std::all_of(barriers_.begin(), barriers_.end(),
                                                              [&](uint32_t barrier) { return InUniform(barrier); });
  return true;
}

// Each thread polls for itself. Nobody may wait for one that has left except at the block's barriers, which all become
// places to leave at.
std::optional<SafepointPlan> Planner::Alone() {
  if (!collective_.empty() || !callees_.collective.empty() || !callees_.barrier.empty() || !callees_.loop.empty() ||
      !odd_barrier_.empty())
    return std::nullopt;
  SafepointPlan plan;
  plan.leaving = Leaving::kAlone;
  plan.waits_for_copies = has_copies_;
  plan.barrier = barrier_;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!wrong_[i].empty()) return std::nullopt;
    const bool is_barrier = i >= flow_.back_branches().size();
    plan.points.push_back({places_[i], is_barrier, !is_barrier, WeightOf(places_[i]), alive_[i]});
  }
  if (!callees_.other_loop.empty()) plan.reasons.push_back(callees_.other_loop);
  return plan;
}

// All threads that are left come to these places equally often, and can wait for each other nowhere else meanwhile.
std::optional<SafepointPlan> Planner::Together() {
  if (!barriers_uniform_ || for_some_) return std::nullopt;
  // A thread in a loop of its own must not wait for what others write who wait for it here.
  const auto& branches = flow_.back_branches();
  const bool apart = std::any_of(branches.begin(), branches.end(), [&](uint32_t at) { return !InUniform(at); });
  if (!callees_.loop.empty() || (apart && waits_)) return std::nullopt;
  SafepointPlan plan;
  plan.leaving = Leaving::kTogether;
  plan.waits_for_copies = has_copies_;
  for (size_t i = 0; i < flow_.back_branches().size(); ++i) {
    if (!wrong_[i].empty()) {
      plan.reasons.push_back(wrong_[i]);
    } else if (!InUniform(places_[i])) {
      plan.reasons.push_back(
          At(code(places_[i]), "not all threads of a block go round this loop together, and they meet others"));
    } else {
      plan.points.push_back({places_[i], false, true, WeightOf(places_[i]), alive_[i]});
    }
  }
  for (const std::string& loop : {callees_.loop, callees_.other_loop})
    if (!loop.empty()) plan.reasons.push_back(loop);
  return plan;
}

// Does a way lead from `block` back to it that enters no `closed` block? True when in doubt.
bool Planner::HasCycle(uint32_t block, const std::vector<bool>& closed) {
  std::vector<bool> seen = closed;
  std::vector<uint32_t> open{block};
  if (!budget_.Spend(seen.size() / 64 + 1)) return true;
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (!budget_.Spend(1 + flow_.blocks()[at].to.size())) return true;
    for (const uint32_t to : flow_.blocks()[at].to) {
      if (to == block) return true;
      if (seen[to]) continue;
      seen[to] = true;
      open.push_back(to);
    }
  }
  return false;
}

std::optional<SafepointPlan> Planner::AtBarriers() {
  if (!callees_.barrier.empty() || !odd_barrier_.empty()) return std::nullopt;
  SafepointPlan plan;
  plan.leaving = Leaving::kBarriers;
  plan.waits_for_copies = has_copies_;
  plan.barrier = barrier_;
  const size_t branches = flow_.back_branches().size();
  std::vector<bool> met(flow_.blocks().size());
  const std::vector<bool> none(flow_.blocks().size());
  for (size_t i = branches; i < places_.size(); ++i) {
    if (!wrong_[i].empty()) return std::nullopt;
    const uint32_t block = flow_.block_of(places_[i]);
    met[block] = met[block] || code(places_[i]).guard == ptx::kNoIndex;
    plan.points.push_back({places_[i], true, HasCycle(block, none), WeightOf(places_[i]), alive_[i]});
  }
  for (size_t i = 0; i < branches; ++i) {
    const uint32_t block = flow_.block_of(places_[i]);
    if (met[block] || !HasCycle(block, met)) continue;
    plan.reasons.push_back(
        At(code(places_[i]), "not all threads of a block go round this loop together, and no barrier is in it"));
  }
  for (const std::string& loop : {callees_.loop, callees_.other_loop})
    if (!loop.empty()) plan.reasons.push_back(loop);
  return plan;
}

std::optional<SafepointPlan> Planner::Run(std::string* reason) {
  Look();
  const bool no_loops = flow_.back_branches().empty() && callees_.loop.empty() && callees_.other_loop.empty();
  if (no_loops) return *reason = "", std::nullopt;
  for (const std::string* why : {&opaque_, &callees_.opaque, &unsavable_})
    if (!why->empty()) return *reason = *why, std::nullopt;
  if (!FindPlaces()) return *reason = "it is too large to be analysed", std::nullopt;
  auto alone = Alone();
  if (alone && barriers_.empty() && !alone->points.empty()) return alone;
  auto together = Together();
  if (together && together->reasons.empty() && !together->points.empty()) return together;
  if (alone && !alone->points.empty()) return alone;
  if (together && !together->points.empty()) return together;
  auto at_barriers = AtBarriers();
  if (at_barriers && !at_barriers->points.empty()) return at_barriers;
  const auto because = [&]() -> std::string {
    for (size_t i = 0; i < flow_.back_branches().size(); ++i)
      if (!wrong_[i].empty()) return wrong_[i];
    for (const std::string* why :
         {&callees_.barrier, &callees_.loop, &callees_.other_loop, &odd_barrier_, &collective_, &callees_.collective})
      if (!why->empty()) return *why;
    return "none of its loops can be left";
  };
  return *reason = because(), std::nullopt;
}

}  // namespace

CalleeFacts CalleesOf(const ptx::Module& module, const Reach& reach, Budget& budget) {
  CalleeFacts facts;
  for (const uint32_t index : reach.functions) {
    const ptx::Function& function = *module.functions[index];
    if (!budget.Spend(function.code.size())) {
      facts.opaque = "it calls too much code to be analysed";
      return facts;
    }
    for (const ptx::Variable& variable : function.variables)
      if (variable.space == ptx::Space::kShared && facts.opaque.empty())
        facts.opaque = fmt::format("line {}: shared memory of function {}", variable.line, function.name);
    std::string loop;
    bool reads = false;
    for (uint32_t i = 0; i < function.code.size(); ++i) {
      const ptx::Instruction& instruction = function.code[i];
      const OpKind kind = FactsOf(instruction).kind;
      if (kind == OpKind::kOpaque) Note(facts.opaque, instruction, "what it keeps is not known");
      if (kind == OpKind::kBarrier) Note(facts.barrier, instruction, "a barrier in a function that it calls");
      if (kind == OpKind::kCollective) Note(facts.collective, instruction, "threads of a warp work together");
      if (kind == OpKind::kAsync) Note(facts.opaque, instruction, "copies that a function has begun");
      if (IsBack(instruction, i)) Note(loop, instruction, "a loop in a function that it calls");
      reads |= ReadsWhatOthersWrite(instruction) || kind == OpKind::kCall;
    }
    if (loop.empty()) continue;
    std::string& to = reads ? facts.loop : facts.other_loop;
    if (to.empty()) to = loop;
  }
  return facts;
}

std::optional<SafepointPlan> PlanSafepoints(const ptx::Module& module, const ptx::Function& kernel, const Reach& reach,
                                            Budget& budget, std::string* reason) {
  if (!budget.Spend(kernel.code.size() * 4 + module.variables.size() + kernel.registers.size()))
    return *reason = "it is too large to be analysed", std::nullopt;
  auto plan = Planner(module, kernel, reach, budget).Run(reason);
  if (!plan) return plan;
  std::sort(plan->points.begin(), plan->points.end(),
            [](const Safepoint& a, const Safepoint& b) { return a.instruction < b.instruction; });
  return plan;
}

}  // namespace vgpud::rewrite
