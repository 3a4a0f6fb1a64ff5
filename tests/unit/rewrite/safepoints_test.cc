// SPDX-License-Identifier: Apache-2.0
// The safepoints rung: blocks are left in the middle and go on, and nothing that they compute changes.
#include <gmock/gmock.h>

#include "tests/unit/rewrite/rewrite_works.h"

namespace vgpud::rewrite {
namespace {

struct Case {
  const char* name;
  uint64_t longest;  // turn, in warp instructions
  bool complete = true;
};

class RewriteSafepoints : public testing::TestWithParam<Case> {};

TEST_P(RewriteSafepoints, ResultsAreThoseOfAnUndisturbedRun) {
  const soft::WorkRow& row = AnyWork(GetParam().name);
  soft::SoftMachine plain;
  const soft::Work original = row.make(plain);
  ASSERT_EQ(plain.Finish(*original.grid).status, CuStatus::kSuccess);
  const uint64_t answer = AnswerOf(plain, original);
  std::mt19937 random(13);
  for (const uint32_t poll_after : {0u, 50u, Options{}.poll_after}) {
    TurnMachine m({.poll_after = poll_after});
    const soft::Work work = row.make(m);
    ASSERT_EQ(m.plan().rung, Rung::kSafepoints) << testing::PrintToString(m.plan().reasons);
    EXPECT_EQ(m.plan().complete, GetParam().complete) << testing::PrintToString(m.plan().reasons);
    const Ran ran = m.Run([&] { return 1 + random() % GetParam().longest; });
    ASSERT_EQ(ran.error, "") << m.text();
    EXPECT_EQ(AnswerOf(m, work), answer) << m.text();
    if (poll_after == 0) {
      EXPECT_GE(ran.cuts, 5u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, RewriteSafepoints,
                         testing::Values(Case{"types", 300}, Case{"meeting", 2000}, Case{"halves", 1500},
                                         Case{"uniform", 1500}, Case{"from_memory", 1500}, Case{"ask_again", 800},
                                         Case{"tables", 400}, Case{"look_back", 500}, Case{"last_block", 500},
                                         Case{"matmul", 3000}, Case{"collatz", 3000}, Case{"meter", 1000},
                                         Case{"recursion", 2000}, Case{"printf", 300}, Case{"malloc", 500},
                                         Case{"textures", 500}, Case{"locks", 1000}, Case{"wmma", 100}),
                         [](const auto& p) { return std::string(p.param.name); });

// As it may be when there is little memory: who finds no slot runs to its end, and nothing else changes.
TEST_P(RewriteSafepoints, BlocksWithoutASlotRunToTheirEnd) {
  const soft::WorkRow& row = AnyWork(GetParam().name);
  soft::SoftMachine plain;
  const soft::Work original = row.make(plain);
  ASSERT_EQ(plain.Finish(*original.grid).status, CuStatus::kSuccess);
  const uint64_t answer = AnswerOf(plain, original);
  std::mt19937 random(17);
  for (const uint32_t slots : {0u, 1u, 3u}) {
    TurnMachine m({.poll_after = 0});
    const soft::Work work = row.make(m);
    const Ran ran = m.Run([&] { return 1 + random() % GetParam().longest; }, slots);
    ASSERT_EQ(ran.error, "") << slots << " slots";
    EXPECT_EQ(AnswerOf(m, work), answer) << slots << " slots";
  }
}

// What safepoints cost a run that nobody interrupts, in warp instructions.
TEST(RewriteCosts, LoopsAreLittleLonger) {
  const auto cost = [](const char* name) {
    soft::SoftMachine plain;
    const soft::Work original = AnyWork(name).make(plain);
    const uint64_t before = plain.Finish(*original.grid).instructions;
    TurnMachine m({});
    const soft::Work work = AnyWork(name).make(m);
    const Ran ran = m.Run([] { return UINT64_MAX; });
    EXPECT_EQ(m.plan().rung, Rung::kSafepoints);
    EXPECT_EQ(AnswerOf(m, work), AnswerOf(plain, original));
    return static_cast<double>(ran.instructions) / static_cast<double>(before);
  };
  EXPECT_LT(cost("large_matmul"), 1.10);
  EXPECT_LT(cost("long_collatz"), 1.25);  // eight instructions in its loop
}

// It never ends by itself, and is off the GPU soon after its turn, each time.
TEST(RewriteEndless, LeavesAtTheEndOfEachTurn) {
  TurnMachine m({});
  ASSERT_EQ(m.Load(soft::ReadPtx("endless")).status, CuStatus::kSuccess);
  const GpuVa flag = m.Alloc(4);
  m.Launch("endless", {{5, 1, 1}, {64, 1, 1}, 0}, soft::Params().Add(flag));
  ASSERT_TRUE(m.plan().complete);
  int turns = 0;
  const Ran ran = m.Run([&]() -> uint64_t {
    const uint32_t one = 1;
    if (++turns == 50) {
      EXPECT_TRUE(m.gpu.CopyIn(flag, std::as_bytes(std::span(&one, 1))));
    }
    return 700;
  });
  EXPECT_EQ(ran.error, "");
  EXPECT_GE(ran.cuts, 49u);
  EXPECT_LT(ran.latest, 5000u);
}

}  // namespace
}  // namespace vgpud::rewrite
