// SPDX-License-Identifier: Apache-2.0
// Registers share slots where their lives do not touch, and nowhere else.
#include "gpu/soft/decode/slots.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "gpu/soft/code/program.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kHeader = 384;
constexpr uint64_t kMost = 1 << 20;
constexpr uint32_t kNowhere = 0xffffffff;

struct Line {
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
  uint32_t target = kNowhere;
  bool falls_through = true;
  bool conditional = false;
};

std::vector<DraftInst> Draft(const std::vector<Line>& lines) {
  std::vector<DraftInst> code;
  for (const Line& line : lines) {
    DraftInst& d = code.emplace_back();
    uint8_t operand = 0;
    for (const uint32_t r : line.writes) d.uses.push_back({r, operand++, true});
    for (const uint32_t r : line.reads) d.uses.push_back({r, operand++, false});
    d.target = line.target;
    d.falls_through = line.falls_through;
    d.conditional = line.conditional;
  }
  return code;
}

uint32_t Slots(const std::vector<Line>& lines, uint32_t registers) {
  return AllocateSlots(Draft(lines), std::vector<SlotClass>(registers, SlotClass::k32), kHeader, kMost).slots32;
}

TEST(SoftSlots, AsManyAsAreAliveAtOnce) {
  EXPECT_EQ(Slots({}, 3), 0u);
  EXPECT_EQ(Slots({{{}, {0}}}, 3), 1u) << "registers that nobody names take none";
  EXPECT_EQ(Slots({{{}, {0}}, {{}, {1}}, {{0, 1}, {}}}, 2), 2u);
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {}}, {{}, {1}}, {{1}, {}}}, 2), 1u);
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {1}}, {{1}, {2}}, {{2}, {}}}, 3), 1u) << "a result takes the place of an operand";
  EXPECT_EQ(Slots({{{}, {0, 1}}}, 2), 2u) << "two results of one instruction";
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {1, 2}}, {{1, 2}, {}}}, 3), 2u);
}

TEST(SoftSlots, LoopsKeepWhatTheNextPassReads) {
  // Read at the top of the loop only, and another register in the rest of it.
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {}}, {{}, {1}}, {{1}, {}, 1}}, 2), 2u);
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {}}, {{}, {1}}, {{1}, {}, 2}}, 2), 1u) << "the read is in front of the loop";
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {}}, {{}, {1}, 1}, {{1}, {}}}, 2), 2u) << "written by the last one of the loop";
  // The value of the pass before: written below where it is read.
  EXPECT_EQ(Slots({{{}, {1}}, {{1}, {}}, {{0}, {}}, {{}, {0}, 0}}, 2), 2u);
  // A new value in each pass does not outlive it; one that is written only sometimes does.
  EXPECT_EQ(Slots({{{}, {1}}, {{1}, {}}, {{}, {0}}, {{0}, {}, 0}}, 2), 1u);
  EXPECT_EQ(Slots({{{}, {1}}, {{1}, {}}, {{}, {0}, kNowhere, true, true}, {{0}, {}, 0}}, 2), 2u);
}

TEST(SoftSlots, CodeRunsInTheOrderOfItsBranches) {
  // 0, 4, 5, 1, 2, 3: register 0 is written behind, in the text, what it must not disturb.
  const auto run = [](uint32_t read_at_the_end) {
    return Slots({{{}, {}, 4, false},
                  {{}, {1}},
                  {{1}, {}},
                  {{read_at_the_end}, {}, kNowhere, false},
                  {{}, {0}},
                  {{0}, {}, 1, false}},
                 2);
  };
  EXPECT_EQ(run(0), 2u);
  EXPECT_EQ(run(1), 1u);
  // What is behind an end is not reached from it.
  EXPECT_EQ(Slots({{{}, {0}}, {{0}, {}, kNowhere, false}, {{}, {1}}, {{1, 0}, {}, 2, false}}, 2), 2u);
}

TEST(SoftSlots, KindsLieBehindEachOther) {
  const std::vector<SlotClass> classes = {SlotClass::k32, SlotClass::kPredicate, SlotClass::k64,
                                          SlotClass::k32, SlotClass::k64,        SlotClass::kPredicate};
  const SlotPlan plan = AllocateSlots(Draft({{{}, {0, 1, 2, 3, 4, 5}}}), classes, kHeader, kMost);
  EXPECT_EQ(plan.slots32, 2u);
  EXPECT_EQ(plan.slots64, 2u);
  EXPECT_EQ(plan.offset,
            (std::vector<uint32_t>{384 + 512, 384 + 512 + 256, 384, 384 + 512 + 128, 384 + 256, 384 + 512 + 256 + 4}));
  EXPECT_EQ(plan.frame_bytes, 384u + 512 + 256 + 64);
}

TEST(SoftSlots, PredicatesTakeWholeLines) {
  for (const auto& [count, bytes] : {std::pair{0u, 0u}, {1u, 64u}, {16u, 64u}, {17u, 128u}, {33u, 192u}}) {
    Line line;
    for (uint32_t r = 0; r < count; ++r) line.writes.push_back(r);
    const SlotPlan plan =
        AllocateSlots(Draft({line}), std::vector<SlotClass>(count, SlotClass::kPredicate), kHeader, kMost);
    EXPECT_EQ(plan.frame_bytes, kHeader + bytes) << count;
  }
}

TEST(SoftSlots, AFrameAboveTheMostHasNoPlaces) {
  const auto code = Draft({{{}, {0, 1}}});
  const std::vector<SlotClass> classes = {SlotClass::k64, SlotClass::k64};
  EXPECT_EQ(AllocateSlots(code, classes, 64, 576).offset, (std::vector<uint32_t>{64, 64 + 256}));
  const SlotPlan plan = AllocateSlots(code, classes, 64, 575);
  EXPECT_TRUE(plan.offset.empty());
  EXPECT_EQ(plan.frame_bytes, 576u);
}

// Runs `lines` twice at once: with each register by itself, and with what shares slots. What is read must be the same.
class Machine {
 public:
  Machine(const std::vector<Line>& lines, const SlotPlan& plan, uint32_t registers)
      : lines_(lines), plan_(plan), own_(registers), slots_(kMost / 4) {}
  // False: a register was read that holds another's value.
  bool Run(std::mt19937& coin) {
    uint64_t fresh = 0;
    uint32_t at = 0;
    for (int step = 0; step < 80 && at < lines_.size(); ++step) {
      const Line& line = lines_[at];
      for (const uint32_t r : line.reads)
        if (own_[r] && slots_[plan_.offset[r] / 4] != *own_[r]) return false;
      const bool writes = !line.conditional || coin() % 2 == 0;
      for (const uint32_t r : line.writes) {
        if (!writes) continue;
        own_[r] = ++fresh;
        slots_[plan_.offset[r] / 4] = fresh;
      }
      const bool jumps = line.target != kNowhere && (!line.falls_through || coin() % 2 == 0);
      if (!jumps && !line.falls_through) return true;
      at = jumps ? line.target : at + 1;
    }
    return true;
  }

 private:
  const std::vector<Line>& lines_;
  const SlotPlan& plan_;
  std::vector<std::optional<uint64_t>> own_;
  std::vector<uint64_t> slots_;
};

TEST(SoftSlots, NoRegisterEverHoldsTheValueOfAnother) {
  std::mt19937 random(20);
  for (int program = 0; program < 1500; ++program) {
    const uint32_t registers = 2 + random() % 5;
    const uint32_t count = 3 + random() % 10;
    std::vector<Line> lines(count);
    for (Line& line : lines) {
      for (uint32_t n = random() % 3; n > 0; --n) line.reads.push_back(random() % registers);
      if (random() % 2 == 0) line.writes.push_back(random() % registers);
      line.conditional = random() % 4 == 0;
      if (random() % 3 == 0) line.target = random() % (count + 1);
      line.falls_through = random() % 5 != 0;
    }
    std::vector<SlotClass> classes(registers);
    for (SlotClass& c : classes) c = static_cast<SlotClass>(random() % 3);
    const SlotPlan plan = AllocateSlots(Draft(lines), classes, kHeader, kMost);
    ASSERT_EQ(plan.offset.size(), registers);
    for (int run = 0; run < 8; ++run) {
      Machine machine(lines, plan, registers);
      ASSERT_TRUE(machine.Run(random)) << "program " << program;
    }
  }
}

// Many registers that cross from block to block, in more words than one.
TEST(SoftSlots, ManyRegistersCrossBlocks) {
  constexpr uint32_t kRegisters = 150;
  std::vector<Line> lines;
  for (uint32_t r = 0; r < kRegisters; ++r) lines.push_back({{}, {r}});
  lines.push_back({{}, {}, kRegisters + 1});
  for (uint32_t r = 0; r < kRegisters; ++r) lines.push_back({{r}, {}, kRegisters + 1});
  EXPECT_EQ(Slots(lines, kRegisters), kRegisters);
  // The same, each read as soon as it is written.
  lines.clear();
  for (uint32_t r = 0; r < kRegisters; ++r) {
    lines.push_back({{}, {r}, static_cast<uint32_t>(lines.size()) + 1});
    lines.push_back({{r}, {}, static_cast<uint32_t>(lines.size()) + 1});
  }
  EXPECT_EQ(Slots(lines, kRegisters), 1u);
}

}  // namespace
}  // namespace vgpud::soft
