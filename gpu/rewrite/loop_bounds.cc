// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/loop_bounds.h"

#include <algorithm>

#include "base/checked.h"
#include "gpu/rewrite/opcodes.h"
#include "gpu/rewrite/registers.h"

namespace vgpud::rewrite {
namespace {

using Kind = ptx::Operand::Kind;

constexpr size_t kMostTerms = 256, kMostLoops = 64;
constexpr int kMostDepth = 24;

// setp's words, and what they say when the branch is taken if they are not so.
constexpr struct {
  std::string_view word;
  Test test, negated;
} kTests[] = {{"ne", Test::kNotEqual, Test::kEqual},    {"eq", Test::kEqual, Test::kNotEqual},
              {"lt", Test::kLess, Test::kGreaterEqual}, {"lo", Test::kLess, Test::kGreaterEqual},
              {"le", Test::kLessEqual, Test::kGreater}, {"ls", Test::kLessEqual, Test::kGreater},
              {"gt", Test::kGreater, Test::kLessEqual}, {"hi", Test::kGreater, Test::kLessEqual},
              {"ge", Test::kGreaterEqual, Test::kLess}, {"hs", Test::kGreaterEqual, Test::kLess}};

constexpr struct {
  std::string_view opcode;
  Term::Op op;
} kOps[] = {{"add", Term::Op::kAdd}, {"sub", Term::Op::kSub}, {"and", Term::Op::kAnd}, {"shl", Term::Op::kShl}};

bool Is32(std::string_view type) { return type == "s32" || type == "u32" || type == "b32"; }
bool IsInteger(std::string_view type) { return type.ends_with("32") || type.ends_with("64"); }
bool IsRegister(const ptx::Operand& operand) { return operand.kind == Kind::kRegister && operand.name.empty(); }

std::optional<int64_t> Constant(const ptx::Operand& operand) {
  const auto value = static_cast<int64_t>(operand.bits);
  if (operand.kind != Kind::kImmediate || operand.is_float || value > INT32_MAX || value < INT32_MIN)
    return std::nullopt;
  return value;
}

bool SameOperand(const ptx::Operand& a, const ptx::Operand& b) {
  if (a.kind != b.kind) return false;
  return a.kind == Kind::kRegister ? a.index == b.index : a.kind == Kind::kImmediate && a.bits == b.bits;
}

}  // namespace

LoopBounds::LoopBounds(const ptx::Function& function, Budget& budget)
    : function_(function), code_(function.code), flow_(function), budget_(budget) {}

uint32_t LoopBounds::Add(const Term& term) {
  terms_.push_back(term);
  return MustFit<uint32_t>(terms_.size() - 1);
}

// The last write to `reg` in front of `end` in its basic block.
const ptx::Instruction* LoopBounds::LastWrite(uint32_t reg, uint32_t end) const {
  const Block& block = flow_.blocks()[flow_.block_of(end - 1)];
  const auto& writers = writers_[reg];
  const auto behind = std::lower_bound(writers.begin(), writers.end(), end);
  return behind == writers.begin() || *(behind - 1) < block.begin ? nullptr : &code_[*(behind - 1)];
}

// Control goes on in the order of the text but where a branch leads back, and those are nested.
bool LoopBounds::Reaches(uint32_t from, uint32_t to) const {
  return from < to || std::any_of(ranges_.begin(), ranges_.end(),
                                  [&](const Range& range) { return range.first <= to && range.last >= from; });
}

// Where the value of `reg` at `at` comes from, if that is one place.
std::optional<uint32_t> LoopBounds::WriterOf(uint32_t reg, uint32_t at) const {
  std::optional<uint32_t> found;
  if (reg >= alive_.size() || alive_[reg] || writers_[reg].size() > kMostTerms) return std::nullopt;
  for (const uint32_t writer : writers_[reg]) {
    if (!Reaches(writer, at)) continue;
    if (found || code_[writer].guard != ptx::kNoIndex) return std::nullopt;
    found = writer;
  }
  return found;
}

std::optional<uint32_t> LoopBounds::TermOf(const ptx::Operand& operand, uint32_t at, int depth) {
  if (const auto value = Constant(operand)) return Add({Term::Op::kConstant, 0, 0, static_cast<uint32_t>(*value)});
  if (!IsRegister(operand)) return std::nullopt;
  const auto writer = WriterOf(operand.index, at);
  return writer ? TermOfInstruction(*writer, depth) : std::nullopt;
}

std::optional<uint32_t> LoopBounds::TermOfInstruction(uint32_t index, int depth) {
  if (const auto known = term_of_.find(index); known != term_of_.end()) return known->second;
  const ptx::Instruction& in = code_[index];
  if (depth > kMostDepth || terms_.size() > kMostTerms || in.guard != ptx::kNoIndex || in.modifiers.empty() ||
      !Is32(in.modifiers.back()) || in.operands.size() < 2)
    return std::nullopt;
  std::optional<uint32_t> term;
  if (in.opcode == "ld") {
    const ptx::Operand& from = in.operands[1];
    const bool param = function_.is_kernel && in.modifiers.size() == 2 && in.modifiers[0] == "param" &&
                       from.kind == Kind::kAddress && from.base == ptx::Operand::Base::kParam && !from.body_param &&
                       !from.return_param && from.index < function_.params.size();
    const int64_t offset = param ? function_.params[from.index].offset + from.offset : -1;
    if (offset < 0 || offset > UINT16_MAX) return std::nullopt;
    term = Add({Term::Op::kParam, 0, 0, static_cast<uint32_t>(offset)});
  } else if (in.opcode == "mov" && in.modifiers.size() == 1) {
    const std::string_view name = in.operands[1].kind == Kind::kSpecial ? in.operands[1].name : "";
    if (name.starts_with("%ntid.") && name.size() == 7 && name[6] >= 'x' && name[6] <= 'z')
      term = Add({Term::Op::kThreads, 0, 0, static_cast<uint32_t>(name[6] - 'x')});
    else
      term = TermOf(in.operands[1], index, depth + 1);
  } else if (in.operands.size() == 3) {
    const auto row =
        std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& at) { return at.opcode == in.opcode; });
    const bool plain = row != std::end(kOps) && in.modifiers.size() == 1;
    const bool shr = in.opcode == "shr" && in.modifiers.size() == 1;
    const bool mul = in.opcode == "mul" && in.modifiers.size() == 2 && in.modifiers[0] == "lo";
    if (!plain && !shr && !mul) return std::nullopt;
    const auto a = TermOf(in.operands[1], index, depth + 1), b = TermOf(in.operands[2], index, depth + 1);
    if (!a || !b) return std::nullopt;
    const Term::Op right = in.modifiers[0] == "s32" ? Term::Op::kShrSigned : Term::Op::kShr;
    term = Add({plain ? row->op : shr ? right : Term::Op::kMul, *a, *b, 0});
  }
  if (term) term_of_.emplace(index, *term);
  return term;
}

std::optional<LoopBounds::Condition> LoopBounds::ConditionOf(uint32_t branch) const {
  const ptx::Instruction& back = code_[branch];
  if (back.guard == ptx::kNoIndex || branch == flow_.blocks()[flow_.block_of(branch)].begin) return std::nullopt;
  const ptx::Instruction* const set = LastWrite(back.guard, branch);
  if (set == nullptr || set->opcode != "setp" || set->guard != ptx::kNoIndex || set->modifiers.size() != 2 ||
      set->operands.size() != 3 || set->operands[0].index != back.guard || !IsRegister(set->operands[1]))
    return std::nullopt;
  const auto row =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const auto& at) { return at.word == set->modifiers[0]; });
  const std::string_view type = set->modifiers[1];
  if (row == std::end(kTests) || !IsInteger(type) || (type.front() != 's' && type.front() != 'u')) return std::nullopt;
  return Condition{set->operands[1].index, back.guard_negated ? row->negated : row->test, &set->operands[2],
                   static_cast<uint32_t>(set - code_.data()), type};
}

// What `reg` has on every way into the range.
std::optional<std::vector<uint32_t>> LoopBounds::Begins(const Range& range, uint32_t reg) {
  const bool alone = std::none_of(ranges_.begin(), ranges_.end(), [&](const Range& other) {
    return other.first <= range.first && other.last >= range.last &&
           (other.first < range.first || other.last > range.last);
  });
  std::optional<uint32_t> before;
  bool one = alone && reg < alive_.size() && !alive_[reg];
  for (const uint32_t writer : writers_[reg]) {
    if (writer >= range.first) break;
    one = one && !before && code_[writer].guard == ptx::kNoIndex;
    before = writer;
  }
  if (one && before) {
    if (const auto term = TermOfInstruction(*before, 0)) return std::vector{*term};
  }
  std::vector<uint32_t> begins;
  const uint32_t first = flow_.block_of(range.first), last = flow_.block_of(range.last);
  if (first == 0) return std::nullopt;
  for (uint32_t b = first; b <= last; ++b) {
    for (const uint32_t from : flow_.blocks()[b].from) {
      if (from >= first && from <= last) continue;
      const ptx::Instruction* const set = LastWrite(reg, flow_.blocks()[from].end);
      const auto term = set == nullptr ? std::nullopt : TermOfInstruction(static_cast<uint32_t>(set - code_.data()), 0);
      if (!term || begins.size() == kMostTerms) return std::nullopt;
      begins.push_back(*term);
    }
  }
  return begins;
}

// Is the range entered from in front only, behind a branch that leads past it where the counter is at its end?
bool LoopBounds::SkipsEnd(const Range& range, const Condition& condition) const {
  const auto& blocks = flow_.blocks();
  const uint32_t first = flow_.block_of(range.first), last = flow_.block_of(range.last);
  for (uint32_t b = first; b <= last; ++b)
    for (const uint32_t from : blocks[b].from)
      if ((from < first || from > last) && (b != first || from + 1 != first)) return false;
  for (uint32_t at = first; at != 0 && budget_.Spend(1); --at) {
    const Block& before = blocks[at - 1];
    if (at != first && (blocks[at].from.size() != 1 || blocks[at].from[0] != at - 1)) return false;
    const ptx::Instruction& branch = code_[before.end - 1];
    if (branch.opcode == "bra" && branch.guard != ptx::kNoIndex && !branch.guard_negated && !branch.operands.empty() &&
        branch.operands[0].index != blocks[at].begin && before.end - 1 != before.begin) {
      const ptx::Instruction* const set = LastWrite(branch.guard, before.end - 1);
      if (set != nullptr && set->opcode == "setp" && set->guard == ptx::kNoIndex && set->modifiers.size() == 2 &&
          set->modifiers[0] == "eq" && set->modifiers[1].substr(1) == "32" && set->operands.size() == 3 &&
          set->operands[0].index == branch.guard && IsRegister(set->operands[1]) &&
          set->operands[1].index == condition.counter && SameOperand(set->operands[2], *condition.end)) {
        const ptx::Instruction* const written = LastWrite(condition.counter, before.end);
        return set->operands[2].kind == Kind::kImmediate && (written == nullptr || written < set);
      }
    }
    if (LastWrite(condition.counter, before.end) != nullptr) return false;
  }
  return false;
}

std::optional<Rounds> LoopBounds::RoundsOf(const Range& range) {
  constexpr uint64_t kBits = 64;
  const auto condition = ConditionOf(range.last);
  if (!condition) return std::nullopt;
  const ptx::Instruction* step = nullptr;
  for (const uint32_t writer : writers_[condition->counter]) {
    if (writer < range.first || writer > range.last) continue;
    if (step != nullptr || flow_.block_of(writer) != flow_.block_of(range.last)) return std::nullopt;
    step = &code_[writer];
  }
  if (step == nullptr || step->guard != ptx::kNoIndex || step->operands.size() != 3 || step->modifiers.size() != 1 ||
      step->operands[0].index != condition->counter || !IsRegister(step->operands[1]) ||
      step->operands[1].index != condition->counter)
    return std::nullopt;
  const auto by = Constant(step->operands[2]);
  const std::string_view type = step->modifiers[0];
  if (!by || !IsInteger(type) || type.substr(1) != condition->type.substr(1)) return std::nullopt;
  Rounds rounds;
  rounds.test = condition->test;
  rounds.is_signed = condition->type.front() == 's';
  if (step->opcode == "shr") {
    const auto end = Constant(*condition->end);
    const bool ends_at_zero =
        end && ((rounds.test == Test::kNotEqual && *end == 0) || (rounds.test == Test::kGreater && *end >= 0) ||
                (rounds.test == Test::kGreaterEqual && *end >= 1));
    // One that is signed may end at -1, which is not zero, and large without a sign.
    const bool sure = type.front() != 's' || (rounds.test != Test::kNotEqual && rounds.is_signed);
    if (*by < 1 || !ends_at_zero || !sure) return std::nullopt;
    rounds.fixed = kBits / static_cast<uint64_t>(*by) + 2;
    return rounds;
  }
  if ((step->opcode != "add" && step->opcode != "sub") || !Is32(type)) return std::nullopt;
  rounds.by = step->opcode == "add" ? *by : -*by;
  const auto begins = Begins(range, condition->counter);
  const auto end = TermOf(*condition->end, condition->at, 0);
  if (!begins || begins->empty() || !end) return std::nullopt;
  rounds.begins = *begins;
  rounds.end = *end;
  rounds.skips_end = SkipsEnd(range, *condition);
  return rounds;
}

bool LoopBounds::Run(Bound& bound) {
  loops_of_.resize(code_.size());
  const auto& branches = flow_.back_branches();
  if (branches.empty()) return true;
  if (branches.size() > kMostLoops || !budget_.Spend(4 * code_.size() + function_.registers.size())) return false;
  writers_.resize(function_.registers.size());
  for (uint32_t i = 0; i < code_.size(); ++i)
    ForEachWrite(code_[i], [&](uint32_t reg, bool) {
      if (writers_[reg].empty() || writers_[reg].back() != i) writers_[reg].push_back(i);
    });
  const auto alive = AliveBefore(function_, flow_, {0}, budget_);
  if (!alive) return false;
  alive_.resize(function_.registers.size());
  for (const uint32_t reg : alive->front())
    if (reg < alive_.size()) alive_[reg] = true;
  for (const uint32_t branch : branches) {
    if (code_[branch].opcode != "bra" || code_[branch].operands.empty()) return false;
    ranges_.push_back({code_[branch].operands[0].index, branch});
  }
  for (const Range& range : ranges_) {
    // Then nothing leads back into a loop but its own branch and those of loops around it.
    for (const Range& other : ranges_)
      if (other.first < range.first && other.last >= range.first && other.last < range.last) return false;
    if (!budget_.Spend(range.last - range.first + code_.size())) return false;
    const auto rounds = RoundsOf(range);
    if (!rounds) return false;
    for (uint32_t i = range.first; i <= range.last; ++i) loops_of_[i].push_back(MustFit<uint32_t>(bound.loops.size()));
    bound.loops.push_back(*rounds);
  }
  bound.terms = std::move(terms_);
  return true;
}

}  // namespace vgpud::rewrite
