// SPDX-License-Identifier: Apache-2.0
// The blocks rung: what a kernel computes does not depend on how often and when its turn ends.
#include "tests/unit/rewrite/rewrite_works.h"

namespace vgpud::rewrite {
namespace {

constexpr Options kBlocks{.best = Rung::kBlocks};

struct Case {
  const char* name;
  uint64_t longest;  // turn, in warp instructions
  bool cut = true;   // its turns are expected to end early
};

class RewriteBlocks : public testing::TestWithParam<Case> {};

TEST_P(RewriteBlocks, ResultsAreThoseOfAnUndisturbedRun) {
  const soft::WorkRow& row = AnyWork(GetParam().name);
  soft::SoftMachine plain;
  const soft::Work original = row.make(plain);
  ASSERT_EQ(plain.Finish(*original.grid).status, CuStatus::kSuccess);
  const uint64_t answer = AnswerOf(plain, original);
  std::mt19937 random(11);
  for (int round = 0; round < 3; ++round) {
    Options options = kBlocks;
    options.keep_originals = round == 2;
    TurnMachine m(options);
    const soft::Work work = row.make(m);
    ASSERT_EQ(m.plan().rung, Rung::kBlocks) << m.plan().reasons.at(0);
    const Ran ran = m.Run([&] { return random() % GetParam().longest; });
    ASSERT_EQ(ran.error, "") << m.text();
    EXPECT_EQ(AnswerOf(m, work), answer) << m.text();
    if (GetParam().cut) {
      EXPECT_GE(ran.cuts, 3u);
    }
  }
}

// Kernels without loops in pieces of random sizes, without a ticket.
class RewritePieces : public testing::TestWithParam<const char*> {};

TEST_P(RewritePieces, ComputesWhatTheWholeDoes) {
  const soft::WorkRow& row = AnyWork(GetParam());
  soft::SoftMachine plain;
  const soft::Work original = row.make(plain);
  ASSERT_EQ(plain.Finish(*original.grid).status, CuStatus::kSuccess);
  Options options;
  options.pieces = true;
  TurnMachine m(options);
  const soft::Work work = row.make(m);
  ASSERT_TRUE(m.plan().pieces);
  std::mt19937 random(5);
  int pieces = 0;
  m.most_of_piece = [&] { return ++pieces, 1 + random() % 9; };
  const Ran ran = m.Run([] { return UINT64_MAX; });
  ASSERT_EQ(ran.error, "") << m.text();
  EXPECT_GT(pieces, 3);
  EXPECT_EQ(AnswerOf(m, work), AnswerOf(plain, original)) << m.text();
}
INSTANTIATE_TEST_SUITE_P(, RewritePieces, testing::Values("index", "vectoradd", "stencil"));

// The kernel as the program has it, launched from a text that has it in turns as well.
TEST_P(RewriteBlocks, TheProgramsOwnKernelStaysBesideIt) {
  const soft::WorkRow& row = AnyWork(GetParam().name);
  soft::SoftMachine plain;
  const soft::Work original = row.make(plain);
  ASSERT_EQ(plain.Finish(*original.grid).status, CuStatus::kSuccess);
  struct : soft::SoftMachine {
    soft::Outcome Load(const std::string& ptx) override {
      const auto rewritten = Rewrite(ptx, {.best = Rung::kBlocks, .keep_originals = true});
      return SoftMachine::Load(rewritten ? rewritten->text : rewritten.error().text);
    }
  } m;
  const soft::Work work = row.make(m);
  ASSERT_NE(work.grid, nullptr);
  ASSERT_EQ(m.Finish(*work.grid).status, CuStatus::kSuccess);
  EXPECT_EQ(AnswerOf(m, work), AnswerOf(plain, original));
}

INSTANTIATE_TEST_SUITE_P(, RewriteBlocks,
                         testing::Values(Case{"index", 700}, Case{"asking", 400}, Case{"look_back", 400},
                                         Case{"full_shared", 1200}, Case{"last_block", 500}, Case{"matmul", 2000},
                                         Case{"collatz", 3000}, Case{"vectoradd", 1000}, Case{"stencil", 1000},
                                         Case{"meter", 1000}, Case{"functions", 2000, false},
                                         Case{"recursion", 500, false}, Case{"printf", 500, false},
                                         Case{"malloc", 500, false}, Case{"textures", 500, false},
                                         Case{"barriers", 500, false}, Case{"reduction", 500, false},
                                         Case{"wmma", 500, false}, Case{"async", 500, false}),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace vgpud::rewrite
