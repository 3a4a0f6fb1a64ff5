// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/slots.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "base/checked.h"
#include "gpu/soft/code/program.h"

namespace vgpud::soft {
namespace {

// Above this the sets of registers are not worked out: a register that crosses blocks has its slot everywhere. Only
// texts that no compiler writes come here.
constexpr uint64_t kMostWords = 8u << 20;    // of one kind of set, all blocks together
constexpr uint64_t kMostSteps = 512u << 20;  // words looked at until nothing changes

struct Block {
  uint32_t begin;
  uint32_t end;
  uint32_t successors[2] = {ptx::kNoIndex, ptx::kNoIndex};
};

std::vector<Block> SplitIntoBlocks(const std::vector<DraftInst>& code) {
  const auto count = MustFit<uint32_t>(code.size());
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
      blocks.push_back({i, count});
    }
    block_of[i] = MustFit<uint32_t>(blocks.size() - 1);
  }
  for (Block& b : blocks) {
    const DraftInst& last = code[b.end - 1];
    if (last.target < count) b.successors[0] = block_of[last.target];
    if (last.falls_through && b.end < count) b.successors[1] = block_of[b.end];
  }
  return blocks;
}

// Reads happen at 2i, writes at 2i + 1: a result may take the place of an operand that dies there.
struct Range {
  uint32_t first = ptx::kNoIndex;
  uint32_t last = 0;
  void Include(uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

// Registers that are alive where one block ends and another begins. Most are not: these are found first, and sets are
// kept of the others only.
class Liveness {
 public:
  Liveness(const std::vector<DraftInst>& code, const std::vector<Block>& blocks, uint32_t registers)
      : code_(code), blocks_(blocks) {
    Number(registers);
    words_ = (crossing_.size() + 63) / 64;
  }
  // Makes the ranges of registers that cross blocks reach as far as they are alive.
  void Extend(std::vector<Range>& ranges) {
    if (crossing_.empty()) return;
    if (words_ * blocks_.size() > kMostWords || !Solve()) {
      for (const uint32_t r : crossing_) {
        ranges[r].Include(0);
        ranges[r].Include(MustFit<uint32_t>(2 * code_.size()));
      }
      return;
    }
    for (size_t n = 0; n < blocks_.size(); ++n) {
      const Block& b = blocks_[n];
      for (size_t word = 0; word < words_; ++word) {
        ForEachBit(in_[n * words_ + word], word, [&](uint32_t r) { ranges[r].Include(2 * b.begin); });
        ForEachBit(OutOf(b, word), word, [&](uint32_t r) { ranges[r].Include(2 * b.end - 1); });
      }
    }
  }

 private:
  // A register crosses blocks if two name it, or if the only one reads what an earlier pass through it has left.
  void Number(uint32_t registers) {
    std::vector<uint32_t> home(registers, ptx::kNoIndex);
    std::vector<uint8_t> crosses(registers);
    for (uint32_t n = 0; n < blocks_.size(); ++n) {
      for (uint32_t i = blocks_[n].begin; i < blocks_[n].end; ++i) {
        for (const bool write : {false, true}) {
          for (const RegisterUse& u : code_[i].uses) {
            if (u.write != write) continue;
            if (home[u.reg] == ptx::kNoIndex) {
              home[u.reg] = n;
              crosses[u.reg] = !u.write || code_[i].conditional;
            } else {
              crosses[u.reg] |= home[u.reg] != n;
            }
          }
        }
      }
    }
    number_.assign(registers, ptx::kNoIndex);
    for (uint32_t r = 0; r < registers; ++r) {
      if (!crosses[r]) continue;
      number_[r] = MustFit<uint32_t>(crossing_.size());
      crossing_.push_back(r);
    }
  }
  template <class F>
  void ForEachBit(uint64_t bits, size_t word, F f) const {
    for (; bits != 0; bits &= bits - 1) f(crossing_[word * 64 + static_cast<size_t>(std::countr_zero(bits))]);
  }
  uint64_t OutOf(const Block& b, size_t word) const {
    uint64_t out = 0;
    for (const uint32_t s : b.successors)
      if (s != ptx::kNoIndex) out |= in_[s * words_ + word];
    return out;
  }
  // False: it would take too long.
  bool Solve() {
    in_.assign(blocks_.size() * words_, 0);
    std::vector<uint64_t> uses(in_.size());
    std::vector<uint64_t> defs(in_.size());
    for (size_t n = 0; n < blocks_.size(); ++n) {
      const auto set = [&](std::vector<uint64_t>& to, uint32_t bit) {
        to[n * words_ + bit / 64] |= uint64_t{1} << (bit % 64);
      };
      const auto defined = [&](uint32_t bit) { return (defs[n * words_ + bit / 64] >> (bit % 64)) & 1; };
      for (uint32_t i = blocks_[n].begin; i < blocks_[n].end; ++i) {
        const DraftInst& d = code_[i];
        for (const RegisterUse& u : d.uses) {
          const uint32_t bit = number_[u.reg];
          if (bit != ptx::kNoIndex && (!u.write || d.conditional) && !defined(bit)) set(uses, bit);
        }
        for (const RegisterUse& u : d.uses)
          if (number_[u.reg] != ptx::kNoIndex && u.write && !d.conditional) set(defs, number_[u.reg]);
      }
    }
    uint64_t steps = 0;
    for (bool changed = true; changed;) {
      changed = false;
      steps += in_.size();
      if (steps > kMostSteps) return false;
      for (size_t n = blocks_.size(); n-- > 0;) {
        for (size_t word = 0; word < words_; ++word) {
          const size_t at = n * words_ + word;
          const uint64_t in = uses[at] | (OutOf(blocks_[n], word) & ~defs[at]);
          changed |= in != in_[at];
          in_[at] = in;
        }
      }
    }
    return true;
  }

  const std::vector<DraftInst>& code_;
  const std::vector<Block>& blocks_;
  std::vector<uint32_t> number_;    // of a register among those that cross
  std::vector<uint32_t> crossing_;  // the other way round
  size_t words_ = 0;
  std::vector<uint64_t> in_;
};

}  // namespace

SlotPlan AllocateSlots(const std::vector<DraftInst>& code, const std::vector<SlotClass>& classes, uint64_t header,
                       uint64_t most) {
  const auto registers = MustFit<uint32_t>(classes.size());
  std::vector<Range> ranges(registers);
  if (!code.empty()) {
    for (uint32_t i = 0; i < code.size(); ++i)
      for (const RegisterUse& u : code[i].uses) ranges[u.reg].Include(2 * i + (u.write ? 1 : 0));
    const std::vector<Block> blocks = SplitIntoBlocks(code);
    Liveness(code, blocks, registers).Extend(ranges);
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
  // Counts below 2^32 times 256 bytes: 64 bits hold their sums.
  const uint64_t at64 = header;
  const uint64_t at32 = at64 + uint64_t{plan.slots64} * kSlot64;
  const uint64_t at_pred = at32 + uint64_t{plan.slots32} * kSlot32;
  plan.frame_bytes = at_pred + (uint64_t{used[static_cast<size_t>(SlotClass::kPredicate)]} * 4 + 63) / 64 * 64;
  if (plan.frame_bytes > most) return plan;
  plan.offset.resize(registers);
  for (uint32_t r = 0; r < registers; ++r) {
    const uint64_t n = slot[r];
    const uint64_t at = classes[r] == SlotClass::k64   ? at64 + n * kSlot64
                        : classes[r] == SlotClass::k32 ? at32 + n * kSlot32
                                                       : at_pred + n * 4;
    plan.offset[r] = MustFit<uint32_t>(at);
  }
  return plan;
}

}  // namespace vgpud::soft
