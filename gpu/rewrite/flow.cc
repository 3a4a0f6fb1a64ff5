// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/flow.h"

#include <algorithm>

#include "base/checked.h"
#include "gpu/rewrite/limits.h"
#include "gpu/rewrite/opcodes.h"
#include "gpu/rewrite/registers.h"

namespace vgpud::rewrite {

Flow::Flow(const ptx::Function& function) {
  const auto count = MustFit<uint32_t>(function.code.size());
  std::vector<bool> leads(count + 1);
  leads[0] = true;
  for (uint32_t i = 0; i < count; ++i) {
    const OpKind kind = FactsOf(function.code[i]).kind;
    if (kind != OpKind::kBranch && kind != OpKind::kEnd) continue;
    leads[i + 1] = true;
    bool back = false;
    ForEachTarget(function.code[i], [&](uint32_t target) {
      leads[target] = true;
      back |= target <= i;
    });
    if (back) back_branches_.push_back(i);
  }
  block_of_.resize(count + 1);
  for (uint32_t i = 0; i < count; ++i) {
    if (leads[i]) {
      if (!blocks_.empty()) blocks_.back().end = i;
      blocks_.push_back({i, count, {}, {}});
    }
    block_of_[i] = MustFit<uint32_t>(blocks_.size() - 1);
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const ptx::Instruction& last = function.code[block.end - 1];
    const OpKind kind = FactsOf(last).kind;
    const auto go = [&](uint32_t instruction) {
      if (instruction < count) block.to.push_back(block_of_[instruction]);
    };
    if (kind == OpKind::kBranch) ForEachTarget(last, go);
    const bool always_leaves = (kind == OpKind::kBranch || kind == OpKind::kEnd) && last.guard == ptx::kNoIndex;
    if (!always_leaves) go(block.end);
    std::sort(block.to.begin(), block.to.end());
    block.to.erase(std::unique(block.to.begin(), block.to.end()), block.to.end());
    for (const uint32_t to : block.to) blocks_[to].from.push_back(b);
  }
}

namespace {

using Bits = std::vector<uint64_t>;
void Set(Bits& bits, uint32_t at) { bits[at / 64] |= uint64_t{1} << at % 64; }
void Clear(Bits& bits, uint32_t at) { bits[at / 64] &= ~(uint64_t{1} << at % 64); }

// From behind `instruction` to in front of it.
void StepBack(const ptx::Instruction& instruction, uint32_t carry, Bits& alive) {
  ForEachWrite(instruction, [&](uint32_t reg, bool whole) {
    if (whole) Clear(alive, reg);
  });
  if (WritesCarry(instruction) && instruction.guard == ptx::kNoIndex) Clear(alive, carry);
  ForEachRead(instruction, [&](uint32_t reg) { Set(alive, reg); });
  if (ReadsCarry(instruction)) Set(alive, carry);
}

}  // namespace

std::optional<std::vector<std::vector<uint32_t>>> AliveBefore(const ptx::Function& function, const Flow& flow,
                                                              const std::vector<uint32_t>& places, Budget& budget) {
  const auto& blocks = flow.blocks();
  const auto carry = MustFit<uint32_t>(function.registers.size());
  const size_t words = carry / 64 + 1;
  if (blocks.size() * words > Limits::kAliveWords || !budget.Spend(blocks.size() * words)) return std::nullopt;
  // Of each block: what it needs from before, as far as known.
  std::vector<Bits> in(blocks.size(), Bits(words));
  std::vector<uint32_t> open;
  std::vector<bool> is_open(blocks.size(), true);
  for (uint32_t b = 0; b < blocks.size(); ++b) open.push_back(b);
  const auto out_of = [&](uint32_t b) {
    Bits alive(words);
    for (const uint32_t to : blocks[b].to)
      for (size_t w = 0; w < words; ++w) alive[w] |= in[to][w];
    return alive;
  };
  while (!open.empty()) {
    const uint32_t b = open.back();
    open.pop_back();
    is_open[b] = false;
    const Block& block = blocks[b];
    if (!budget.Spend((block.to.size() + 2) * words + (block.end - block.begin))) return std::nullopt;
    Bits alive = out_of(b);
    for (uint32_t i = block.end; i > block.begin; --i) StepBack(function.code[i - 1], carry, alive);
    if (alive == in[b]) continue;
    in[b] = std::move(alive);
    for (const uint32_t from : block.from) {
      if (is_open[from]) continue;
      is_open[from] = true;
      open.push_back(from);
    }
  }
  std::vector<std::vector<uint32_t>> answer;
  size_t found = 0;
  for (const uint32_t place : places) {
    const Block& block = blocks[flow.block_of(place)];
    if (!budget.Spend((block.to.size() + 66) * words + (block.end - place))) return std::nullopt;
    Bits alive = out_of(flow.block_of(place));
    for (uint32_t i = block.end; i > place; --i) StepBack(function.code[i - 1], carry, alive);
    auto& list = answer.emplace_back();
    for (uint32_t reg = 0; reg <= carry; ++reg)
      if (alive[reg / 64] >> reg % 64 & 1) list.push_back(reg);
    found += list.size();
    if (found > Limits::kAliveRegisters) return std::nullopt;
  }
  return answer;
}

}  // namespace vgpud::rewrite
