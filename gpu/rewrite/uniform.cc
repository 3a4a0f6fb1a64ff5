// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/uniform.h"

#include <algorithm>

#include "base/checked.h"
#include "gpu/rewrite/registers.h"

namespace vgpud::rewrite {
namespace {

constexpr uint32_t kNone = ptx::kNoIndex;
// The same in all threads of a block, at any time.
constexpr std::string_view kSameInBlock[] = {"%ctaid.x", "%ctaid.y",  "%ctaid.z",  "%ntid.x",           "%ntid.y",
                                             "%ntid.z",  "%nctaid.x", "%nctaid.y", "%nctaid.z",         "WARP_SZ",
                                             "%nwarpid", "%nsmid",    "%gridid",   "%dynamic_smem_size"};

// The blocks that matter, and their immediate post-dominators (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance
// Algorithm") in what is left of the graph when the others are gone.
class PostDominators {
 public:
  PostDominators(const Flow& flow, const std::vector<bool>& matters) : flow_(flow), matters_(matters) {}
  // of[b]: kNone = the end, or b does not matter.
  std::optional<std::vector<uint32_t>> Find(Budget& budget);

 private:
  uint32_t Meet(uint32_t a, uint32_t b, Budget& budget) const;
  void Order();

  const Flow& flow_;
  const std::vector<bool>& matters_;
  std::vector<uint32_t> order_;   // blocks, each behind all that it leads to, cycles aside
  std::vector<uint32_t> number_;  // of each block in it; the end has the lowest, 0
  std::vector<uint32_t> of_;      // by block; exit_ = the end
  uint32_t exit_ = 0;
};

// Backwards from the end, depth first.
void PostDominators::Order() {
  const auto& blocks = flow_.blocks();
  exit_ = MustFit<uint32_t>(blocks.size());
  number_.assign(blocks.size() + 1, kNone);
  std::vector<bool> seen(blocks.size());
  struct Step {
    uint32_t block;
    size_t next;
  };
  std::vector<uint32_t> last_first;
  std::vector<Step> stack;
  for (uint32_t start = 0; start < blocks.size(); ++start) {
    const bool ends = matters_[start] && std::none_of(blocks[start].to.begin(), blocks[start].to.end(),
                                                      [&](uint32_t to) { return matters_[to]; });
    if (!ends || seen[start]) continue;
    seen[start] = true;
    stack.push_back({start, 0});
    while (!stack.empty()) {
      Step& step = stack.back();
      const auto& from = blocks[step.block].from;
      if (step.next == from.size()) {
        last_first.push_back(step.block);
        stack.pop_back();
        continue;
      }
      const uint32_t next = from[step.next++];
      if (!matters_[next] || seen[next]) continue;
      seen[next] = true;
      stack.push_back({next, 0});
    }
  }
  order_.assign(last_first.rbegin(), last_first.rend());
  number_[exit_] = 0;
  for (uint32_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i + 1;
}

uint32_t PostDominators::Meet(uint32_t a, uint32_t b, Budget& budget) const {
  while (a != b) {
    if (!budget.Spend(1)) return exit_;
    if (number_[a] > number_[b])
      a = of_[a];
    else
      b = of_[b];
  }
  return a;
}

std::optional<std::vector<uint32_t>> PostDominators::Find(Budget& budget) {
  const auto& blocks = flow_.blocks();
  Order();
  // Some never come to an end: then nothing is known of where they meet.
  if (order_.size() != static_cast<size_t>(std::count(matters_.begin(), matters_.end(), true)))
    return std::vector<uint32_t>(blocks.size(), kNone);
  of_.assign(blocks.size() + 1, kNone);
  of_[exit_] = exit_;
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t b : order_) {
      if (!budget.Spend(1 + blocks[b].to.size())) return std::nullopt;
      uint32_t meet = kNone;
      bool ends = true;
      for (const uint32_t to : blocks[b].to) {
        if (!matters_[to]) continue;
        ends = false;
        if (of_[to] == kNone) continue;  // not known yet
        meet = meet == kNone ? to : Meet(meet, to, budget);
      }
      if (ends) meet = exit_;
      if (meet == kNone || of_[b] == meet) continue;
      of_[b] = meet;
      changed = true;
    }
  }
  if (!budget.Spend(1)) return std::nullopt;
  std::vector<uint32_t> answer(blocks.size(), kNone);
  for (uint32_t b = 0; b < blocks.size(); ++b)
    if (of_[b] != exit_) answer[b] = of_[b];
  return answer;
}

class Uniformity {
 public:
  Uniformity(const ptx::Function& kernel, const Flow& flow, Budget& budget)
      : kernel_(kernel), flow_(flow), budget_(budget), varies_(kernel.registers.size() + 1) {}
  std::optional<std::vector<bool>> Run();

 private:
  std::vector<bool> BlocksThatMatter() const;
  bool NoteUnset();
  bool Varies(const ptx::Instruction& instruction) const;
  bool Spread(uint32_t block);
  uint32_t carry() const { return MustFit<uint32_t>(kernel_.registers.size()); }

  const ptx::Function& kernel_;
  const Flow& flow_;
  Budget& budget_;
  std::vector<bool> varies_;  // registers, and the carry flag
  std::vector<bool> matters_;
  std::vector<uint32_t> meets_;  // by block: where its ways meet
  std::vector<bool> apart_;      // blocks that not all threads come to equally often
  std::vector<bool> spread_;
};

// From which a place can be reached where threads could meet.
std::vector<bool> Uniformity::BlocksThatMatter() const {
  const auto& blocks = flow_.blocks();
  std::vector<bool> matters(blocks.size());
  std::vector<uint32_t> open;
  const auto add = [&](uint32_t block) {
    if (matters[block]) return;
    matters[block] = true;
    open.push_back(block);
  };
  for (const uint32_t branch : flow_.back_branches()) add(flow_.block_of(branch));
  for (uint32_t b = 0; b < blocks.size(); ++b)
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) {
      const OpKind kind = FactsOf(kernel_.code[i]).kind;
      if (kind == OpKind::kBarrier || kind == OpKind::kCollective || kind == OpKind::kCall || kind == OpKind::kOpaque)
        add(b);
    }
  while (!open.empty()) {
    const uint32_t b = open.back();
    open.pop_back();
    for (const uint32_t from : blocks[b].from) add(from);
  }
  return matters;
}

// What a register holds that nobody has set differs from thread to thread.
bool Uniformity::NoteUnset() {
  if (kernel_.code.empty()) return true;
  const auto alive = AliveBefore(kernel_, flow_, {0}, budget_);
  if (!alive) return false;
  for (const uint32_t reg : alive->front()) varies_[reg] = true;
  return true;
}

// Is what it writes different from thread to thread, if all of them run it together?
bool Uniformity::Varies(const ptx::Instruction& instruction) const {
  const OpFacts facts = FactsOf(instruction);
  if (facts.kind == OpKind::kBarrier) return false;  // bar.red gives all threads the same
  if (facts.kind != OpKind::kPlain || ReadsWhatOthersWrite(instruction)) return true;
  if (instruction.opcode == "ld" && HasModifier(instruction, "local")) return true;
  bool varies = ReadsCarry(instruction) && varies_[carry()];
  ForEachRead(instruction, [&](uint32_t reg) { varies |= varies_[reg]; });
  for (const ptx::Operand& operand : instruction.operands)
    ForEach(operand, [&](const ptx::Operand& part) {
      using Kind = ptx::Operand::Kind;
      if (part.kind == Kind::kSpecial)
        varies |= std::find(std::begin(kSameInBlock), std::end(kSameInBlock), part.name) == std::end(kSameInBlock);
      varies |= part.kind == Kind::kParam && part.body_param;
      varies |= part.kind == Kind::kAddress && part.body_param;
    });
  return varies;
}

// Not all threads leave `block` the same way: what lies before the ways meet is not theirs together.
bool Uniformity::Spread(uint32_t block) {
  if (spread_[block]) return true;
  spread_[block] = true;
  std::vector<uint32_t> open;
  std::vector<bool> seen(flow_.blocks().size());
  if (!budget_.Spend(seen.size() / 64 + 1)) return false;
  const auto go = [&](uint32_t from) {
    for (const uint32_t to : flow_.blocks()[from].to) {
      if (!matters_[to] || to == meets_[block] || seen[to]) continue;
      seen[to] = true;
      open.push_back(to);
    }
  };
  go(block);
  while (!open.empty()) {
    const uint32_t b = open.back();
    open.pop_back();
    if (!budget_.Spend(1 + flow_.blocks()[b].to.size())) return false;
    apart_[b] = true;
    go(b);
  }
  return true;
}

std::optional<std::vector<bool>> Uniformity::Run() {
  const auto& blocks = flow_.blocks();
  matters_ = BlocksThatMatter();
  auto meets = PostDominators(flow_, matters_).Find(budget_);
  if (!meets || !NoteUnset()) return std::nullopt;
  meets_ = std::move(*meets);
  apart_.assign(blocks.size(), false);
  spread_.assign(blocks.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    if (!budget_.Spend(kernel_.code.size())) return std::nullopt;
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) {
        const ptx::Instruction& instruction = kernel_.code[i];
        if (!apart_[b] && !Varies(instruction)) continue;
        const auto note = [&](uint32_t reg) {
          changed |= !varies_[reg];
          varies_[reg] = true;
        };
        ForEachWrite(instruction, [&](uint32_t reg, bool) { note(reg); });
        if (WritesCarry(instruction)) note(carry());
      }
      const auto ways =
          std::count_if(blocks[b].to.begin(), blocks[b].to.end(), [&](uint32_t to) { return matters_[to]; });
      if (ways < 2 || spread_[b]) continue;
      const ptx::Instruction& last = kernel_.code[blocks[b].end - 1];
      bool varies = last.guard != ptx::kNoIndex && varies_[last.guard];
      ForEachRead(last, [&](uint32_t reg) { varies |= varies_[reg]; });
      if (!varies) continue;
      if (!Spread(b)) return std::nullopt;
      changed = true;
    }
  }
  for (uint32_t b = 0; b < blocks.size(); ++b) apart_[b] = !apart_[b] && matters_[b];
  return apart_;
}

}  // namespace

std::optional<std::vector<bool>> UniformBlocks(const ptx::Function& kernel, const Flow& flow, Budget& budget) {
  return Uniformity(kernel, flow, budget).Run();
}

}  // namespace vgpud::rewrite
