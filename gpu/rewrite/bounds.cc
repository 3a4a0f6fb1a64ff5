// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/bounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "gpu/rewrite/opcodes.h"
#include "gpu/rewrite/registers.h"

namespace vgpud::rewrite {
namespace {

using Kind = ptx::Operand::Kind;

// Counters and steps beyond are not looked at, so that nothing wraps.
constexpr int64_t kMostValue = 1 << 30;
// What the driver's own functions take: they copy some words, or search a list. Guessed.
constexpr struct {
  std::string_view name;
  uint64_t instructions;
} kExterns[] = {{"vprintf", 256}, {"malloc", 512}, {"free", 512}, {"__assertfail", 256}};

enum class Test : uint8_t { kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kEqual };

// setp's words, and what they say when the branch is taken if they are not so.
constexpr struct {
  std::string_view word;
  Test test, negated;
} kTests[] = {{"ne", Test::kNotEqual, Test::kEqual},    {"eq", Test::kEqual, Test::kNotEqual},
              {"lt", Test::kLess, Test::kGreaterEqual}, {"lo", Test::kLess, Test::kGreaterEqual},
              {"le", Test::kLessEqual, Test::kGreater}, {"ls", Test::kLessEqual, Test::kGreater},
              {"gt", Test::kGreater, Test::kLessEqual}, {"hi", Test::kGreater, Test::kLessEqual},
              {"ge", Test::kGreaterEqual, Test::kLess}, {"hs", Test::kGreaterEqual, Test::kLess}};

// The loop goes on as long as `counter` compared with `end` is so. `type` as of the instruction: s32.
struct Condition {
  uint32_t counter;
  Test test;
  int64_t end;
  std::string_view type;
};
// Bits and what the type says of them.
bool SameWidth(std::string_view a, std::string_view b) { return a.substr(1) == b.substr(1); }
bool IsInteger(std::string_view type) { return type.ends_with("32") || type.ends_with("64"); }

bool IsRegister(const ptx::Operand& operand) { return operand.kind == Kind::kRegister && operand.name.empty(); }

std::optional<int64_t> Constant(const ptx::Operand& operand) {
  const auto value = static_cast<int64_t>(operand.bits);
  if (operand.kind != Kind::kImmediate || operand.is_float || value > kMostValue || value < -kMostValue)
    return std::nullopt;
  return value;
}

bool Writes(const ptx::Instruction& instruction, uint32_t reg) {
  bool writes = false;
  ForEachWrite(instruction, [&](uint32_t written, bool) { writes |= written == reg; });
  return writes;
}

class LoopBounds {
 public:
  LoopBounds(const ptx::Function& function, Budget& budget) : code_(function.code), flow_(function), budget_(budget) {}

  // For each instruction how often it runs at most; empty: not known.
  std::vector<uint64_t> Run() {
    std::vector<uint64_t> times(code_.size(), 1);
    std::vector<Range> ranges;
    for (const uint32_t branch : flow_.back_branches()) {
      if (code_[branch].opcode != "bra" || code_[branch].operands.empty()) return {};
      ranges.push_back({code_[branch].operands[0].index, branch});
    }
    for (const Range& range : ranges) {
      // Then nothing leads back into a loop but its own branch and those of loops around it.
      for (const Range& other : ranges)
        if (other.first < range.first && other.last >= range.first && other.last < range.last) return {};
      if (!budget_.Spend(range.last - range.first + ranges.size())) return {};
      const auto rounds = RoundsOf(range);
      if (!rounds) return {};
      for (uint32_t i = range.first; i <= range.last; ++i) times[i] = (CheckedSize(times[i]) * *rounds).saturated();
    }
    return times;
  }

 private:
  struct Range {
    uint32_t first, last;  // the branch back
  };

  // The last write to `reg` in front of `end` in its basic block.
  const ptx::Instruction* LastWrite(uint32_t reg, uint32_t end) const {
    const Block& block = flow_.blocks()[flow_.block_of(end - 1)];
    for (uint32_t i = end; i > block.begin; --i)
      if (Writes(code_[i - 1], reg)) return &code_[i - 1];
    return nullptr;
  }

  std::optional<Condition> ConditionOf(uint32_t branch) const {
    const ptx::Instruction& back = code_[branch];
    if (back.guard == ptx::kNoIndex || branch == flow_.blocks()[flow_.block_of(branch)].begin) return std::nullopt;
    const ptx::Instruction* const set = LastWrite(back.guard, branch);
    if (set == nullptr || set->opcode != "setp" || set->guard != ptx::kNoIndex || set->modifiers.size() != 2 ||
        set->operands.size() != 3 || set->operands[0].index != back.guard || !IsRegister(set->operands[1]))
      return std::nullopt;
    const auto row = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const auto& at) { return at.word == set->modifiers[0]; });
    const auto end = Constant(set->operands[2]);
    const std::string_view type = set->modifiers[1];
    if (row == std::end(kTests) || !end || !IsInteger(type) || (type.front() != 's' && type.front() != 'u') ||
        (type.front() == 'u' && *end < 0))
      return std::nullopt;
    return Condition{set->operands[1].index, back.guard_negated ? row->negated : row->test, *end, type};
  }

  // The constant that `reg` has on every way into the range; nullopt: not known.
  std::optional<std::vector<int64_t>> Begins(const Range& range, uint32_t reg) const {
    std::vector<int64_t> begins;
    const uint32_t first = flow_.block_of(range.first), last = flow_.block_of(range.last);
    if (first == 0) return std::nullopt;
    for (uint32_t b = first; b <= last; ++b) {
      for (const uint32_t from : flow_.blocks()[b].from) {
        if (from >= first && from <= last) continue;
        const ptx::Instruction* const set = LastWrite(reg, flow_.blocks()[from].end);
        if (set == nullptr || set->opcode != "mov" || set->guard != ptx::kNoIndex || set->operands.size() != 2)
          return std::nullopt;
        const auto value = Constant(set->operands[1]);
        if (!value) return std::nullopt;
        begins.push_back(*value);
      }
    }
    return begins;
  }

  // How often its instructions run each time it is entered.
  std::optional<uint64_t> RoundsOf(const Range& range) const {
    const auto condition = ConditionOf(range.last);
    if (!condition) return std::nullopt;
    const ptx::Instruction* step = nullptr;
    for (uint32_t i = range.first; i <= range.last; ++i) {
      if (!Writes(code_[i], condition->counter)) continue;
      if (step != nullptr || flow_.block_of(i) != flow_.block_of(range.last)) return std::nullopt;
      step = &code_[i];
    }
    if (step == nullptr || step->guard != ptx::kNoIndex || step->operands.size() != 3 || step->modifiers.size() != 1 ||
        step->operands[0].index != condition->counter || !IsRegister(step->operands[1]) ||
        step->operands[1].index != condition->counter)
      return std::nullopt;
    const auto by = Constant(step->operands[2]);
    if (!by || !IsInteger(step->modifiers[0]) || !SameWidth(step->modifiers[0], condition->type)) return std::nullopt;
    const std::string_view type = step->modifiers[0];
    if (step->opcode == "shr") return RoundsOfShift(*condition, type, *by);
    if (step->opcode != "add" && step->opcode != "sub") return std::nullopt;
    const auto begins = Begins(range, condition->counter);
    if (!begins || begins->empty()) return std::nullopt;
    uint64_t most = 0;
    for (const int64_t begin : *begins) {
      const auto rounds = RoundsOfCount(*condition, begin, step->opcode == "add" ? *by : -*by);
      if (!rounds) return std::nullopt;
      most = std::max(most, *rounds);
    }
    return most;
  }

  static std::optional<uint64_t> RoundsOfShift(const Condition& condition, std::string_view type, int64_t by) {
    constexpr uint64_t kBits = 64;
    const bool goes_on_at_zero = condition.test == Test::kNotEqual       ? condition.end != 0
                                 : condition.test == Test::kGreater      ? condition.end < 0
                                 : condition.test == Test::kGreaterEqual ? condition.end < 1
                                                                         : true;
    // One that is signed may end at -1, which is not zero, and large without a sign.
    const bool sure = type.front() != 's' || (condition.test != Test::kNotEqual && condition.type.front() == 's');
    if (by < 1 || goes_on_at_zero || !sure) return std::nullopt;
    return kBits / static_cast<uint64_t>(by) + 2;
  }

  // One more than needed, because the test may be in front of the step.
  static std::optional<uint64_t> RoundsOfCount(const Condition& condition, int64_t begin, int64_t by) {
    const int64_t distance = by > 0 ? condition.end - begin : begin - condition.end, each = by > 0 ? by : -by;
    if (each == 0) return std::nullopt;
    const bool up = condition.test == Test::kLess || condition.test == Test::kLessEqual;
    const bool down = condition.test == Test::kGreater || condition.test == Test::kGreaterEqual;
    if (condition.test == Test::kNotEqual ? distance % each != 0 || distance < each : by > 0 ? !up : !down)
      return std::nullopt;
    // Below zero one without a sign is a large one.
    if (by < 0 && condition.type.front() == 'u' && down && (condition.end < each || begin < 0)) return std::nullopt;
    return static_cast<uint64_t>(std::max<int64_t>(distance, 0) / each) + 2;
  }

  const std::vector<ptx::Instruction>& code_;
  Flow flow_;
  Budget& budget_;
};

class Bounds {
 public:
  Bounds(const ptx::Module& module, uint64_t at_most, Budget& budget)
      : module_(module), at_most_(at_most), budget_(budget) {
    for (const auto& function : module.functions) by_name_.emplace(function->name, function.get());
  }

  uint64_t Of(const ptx::Function& function, int depth) {
    constexpr int kMostDepth = 32;
    const auto [known, fresh] = known_.emplace(&function, 0);
    if (!fresh) return known->second;  // 0 while it is looked at: it calls itself
    if (depth > kMostDepth || !budget_.Spend(2 * function.code.size() + 1)) return 0;
    const std::vector<uint64_t> times = LoopBounds(function, budget_).Run();
    uint64_t sum = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      const uint64_t each = OfInstruction(function.code[i], depth);
      sum = (CheckedSize(times[i]) * each + sum).saturated();
      if (each == 0 || sum > at_most_) return 0;
    }
    return known_[&function] = sum;
  }

 private:
  uint64_t OfInstruction(const ptx::Instruction& instruction, int depth) {
    if (instruction.opcode == "nanosleep") return 0;
    if (instruction.opcode != "call") return 1;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.kind != Kind::kFunction) continue;
      for (const auto& row : kExterns)
        if (row.name == operand.name) return row.instructions;
      const auto found = by_name_.find(operand.name);
      if (found == by_name_.end() || found->second->is_extern) return 0;
      const uint64_t callee = Of(*found->second, depth + 1);
      return callee == 0 ? 0 : callee + 1;
    }
    // By address any of them may be meant.
    if (!budget_.Spend(module_.functions.size())) return 0;
    uint64_t most = 1;
    for (const auto& function : module_.functions) {
      if (function->is_kernel || function->is_extern) continue;
      const uint64_t callee = Of(*function, depth + 1);
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

uint64_t MostInstructions(const ptx::Module& module, const ptx::Function& kernel, uint64_t at_most, Budget& budget) {
  if (!budget.Spend(module.functions.size())) return 0;
  return Bounds(module, at_most, budget).Of(kernel, 0);
}

}  // namespace vgpud::rewrite
