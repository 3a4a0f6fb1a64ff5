#include "gpu/soft/slots.h"

#include <algorithm>
#include <queue>

#include "gpu/soft/program.h"

namespace vgpud::soft {
namespace {

struct Block {
  uint32_t begin;
  uint32_t end;
  std::vector<uint32_t> successors;
  std::vector<uint64_t> in;
  std::vector<uint64_t> uses;
  std::vector<uint64_t> defs;
};

bool Test(const std::vector<uint64_t>& set, uint32_t bit) { return (set[bit / 64] >> (bit % 64)) & 1; }
void Set(std::vector<uint64_t>& set, uint32_t bit) { set[bit / 64] |= uint64_t{1} << (bit % 64); }

std::vector<Block> SplitIntoBlocks(const std::vector<DraftInst>& code) {
  const auto count = static_cast<uint32_t>(code.size());
  std::vector<uint8_t> leader(count + 1);
  leader[0] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (code[i].target < count) leader[code[i].target] = 1;
    if (code[i].target != ptx::kNoIndex || !code[i].falls_through) leader[i + 1] = 1;
  }
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of(count + 1, ptx::kNoIndex);
  for (uint32_t i = 0; i < count; ++i) {
    if (leader[i]) {
      if (!blocks.empty()) blocks.back().end = i;
      blocks.push_back({i, count, {}, {}, {}, {}});
    }
    block_of[i] = static_cast<uint32_t>(blocks.size() - 1);
  }
  for (Block& b : blocks) {
    const DraftInst& last = code[b.end - 1];
    if (last.target < count) b.successors.push_back(block_of[last.target]);
    if (last.falls_through && b.end < count) b.successors.push_back(block_of[b.end]);
  }
  return blocks;
}

void SolveLiveness(std::vector<Block>& blocks, const std::vector<DraftInst>& code, size_t words) {
  for (Block& b : blocks) {
    b.in.assign(words, 0);
    b.uses.assign(words, 0);
    b.defs.assign(words, 0);
    for (uint32_t i = b.begin; i < b.end; ++i) {
      for (const RegisterUse& u : code[i].uses)
        if ((!u.write || code[i].conditional) && !Test(b.defs, u.reg)) Set(b.uses, u.reg);
      for (const RegisterUse& u : code[i].uses)
        if (u.write && !code[i].conditional) Set(b.defs, u.reg);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = blocks.size(); n-- > 0;) {
      Block& b = blocks[n];
      for (size_t word = 0; word < words; ++word) {
        uint64_t out = 0;
        for (const uint32_t s : b.successors) out |= blocks[s].in[word];
        const uint64_t in = b.uses[word] | (out & ~b.defs[word]);
        changed |= in != b.in[word];
        b.in[word] = in;
      }
    }
  }
}

struct Range {
  uint32_t first = ptx::kNoIndex;
  uint32_t last = 0;
  void Include(uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

}  // namespace

SlotPlan AllocateSlots(const std::vector<DraftInst>& code, const std::vector<SlotClass>& classes, uint32_t header) {
  const auto registers = static_cast<uint32_t>(classes.size());
  std::vector<Range> ranges(registers);
  if (!code.empty()) {
    std::vector<Block> blocks = SplitIntoBlocks(code);
    SolveLiveness(blocks, code, registers / 64 + 1);
    // Reads happen at 2i, writes at 2i + 1: a result may take the place of an operand that dies there.
    for (const Block& b : blocks) {
      for (uint32_t i = b.begin; i < b.end; ++i)
        for (const RegisterUse& u : code[i].uses) ranges[u.reg].Include(2 * i + (u.write ? 1 : 0));
      for (uint32_t r = 0; r < registers; ++r) {
        if (Test(b.in, r)) ranges[r].Include(2 * b.begin);
        for (const uint32_t s : b.successors)
          if (Test(blocks[s].in, r)) ranges[r].Include(2 * b.end - 1);
      }
    }
  }
  std::vector<uint32_t> order;
  for (uint32_t r = 0; r < registers; ++r)
    if (ranges[r].first != ptx::kNoIndex) order.push_back(r);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return ranges[a].first < ranges[b].first; });

  std::vector<uint32_t> slot(registers, 0);
  uint32_t used[3] = {};
  using Busy = std::pair<uint32_t, uint32_t>;  // last position, slot
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy[3];
  for (const uint32_t r : order) {
    const auto c = static_cast<size_t>(classes[r]);
    if (!busy[c].empty() && busy[c].top().first < ranges[r].first) {
      slot[r] = busy[c].top().second;
      busy[c].pop();
    } else {
      slot[r] = used[c]++;
    }
    busy[c].push({ranges[r].last, slot[r]});
  }
  SlotPlan plan;
  plan.slots64 = used[static_cast<size_t>(SlotClass::k64)];
  plan.slots32 = used[static_cast<size_t>(SlotClass::k32)];
  const uint32_t at64 = header;
  const uint32_t at32 = at64 + plan.slots64 * kSlot64;
  const uint32_t at_pred = at32 + plan.slots32 * kSlot32;
  plan.offset.resize(registers);
  for (uint32_t r = 0; r < registers; ++r) {
    if (classes[r] == SlotClass::k64) plan.offset[r] = at64 + slot[r] * kSlot64;
    if (classes[r] == SlotClass::k32) plan.offset[r] = at32 + slot[r] * kSlot32;
    if (classes[r] == SlotClass::kPredicate) plan.offset[r] = at_pred + slot[r] * 4;
  }
  plan.frame_bytes = at_pred + (used[static_cast<size_t>(SlotClass::kPredicate)] * 4 + 63) / 64 * 64;
  return plan;
}

}  // namespace vgpud::soft
