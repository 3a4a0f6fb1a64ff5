// SPDX-License-Identifier: Apache-2.0
// What is refused, and in which words; what is left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/ptx/parser.h"
#include "gpu/rewrite/rewrite.h"

namespace vgpud::rewrite {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string Module(const std::string& body, const std::string& before = "", const std::string& params = "",
                   const std::string& directives = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + before + ".visible .entry k(" + params + ") " +
         directives + "\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>;\n" + body + "\nret;\n}\n";
}
KernelPlan PlanOf(const std::string& text, const Options& options = {}) {
  const auto rewritten = Rewrite(text, options);
  EXPECT_TRUE(rewritten) << rewritten.error().text;
  if (!rewritten) return {};
  EXPECT_TRUE(ptx::Parse(rewritten->text)) << rewritten->text;
  return rewritten->kernels.at(0);
}

struct Refusal {
  const char* body;
  const char* why;
  const char* before = "";
  const char* params = "";
  const char* directives = "";
};

TEST(RewritePlan, WhatNeedsAllBlocksAtOnceIsLeftAsItIs) {
  for (const Refusal& r : {
           Refusal{"mov.u32 %r1, %envreg1;", "line 7: waits for the whole grid (cooperative groups) (mov)"},
           Refusal{"mov.u32 %r1, %cluster_ctarank;", "is made for clusters"},
           Refusal{"barrier.cluster.arrive;", "is made for clusters"},
           Refusal{"griddepcontrol.wait;", "waits for other blocks"},
           Refusal{"", "launched in clusters", "", "", ".reqnctapercluster 2, 1, 1"},
           Refusal{"call.uni other, ();", "other is not in this module", ".extern .func other();\n"},
           Refusal{"mov.u64 %rd1, k;", "may launch it"},
           Refusal{"mov.u64 %rd1, table;", "table holds the address of kernel child",
                   ".entry child() { ret; }\n.global .u64 table[1] = {child};\n"},
           Refusal{"", "no parameter can be added", "", ".param .b8 big[4096]"},
       }) {
    const std::string text = Module(r.body, r.before, r.params, r.directives);
    const auto rewritten = Rewrite(text);
    ASSERT_TRUE(rewritten) << rewritten.error().text;
    const KernelPlan& plan = rewritten->kernels.back();
    EXPECT_EQ(plan.rung, Rung::kNone) << r.body;
    EXPECT_THAT(plan.reasons, Contains(HasSubstr(r.why)));
    if (rewritten->kernels.size() == 1) {
      EXPECT_EQ(rewritten->text, text);
    }
  }
}

constexpr const char* kLoop = "AGAIN: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra AGAIN;";

// Of a loop that each thread goes round a different number of times; behind it stands `body`.
TEST(RewritePlan, LoopsThatCannotBeLeftAreNamed) {
  for (const Refusal& r : {
           Refusal{"mbarrier.init.shared.b64 [%r1], 1;", "line 8: what it keeps is not known (mbarrier)"},
           Refusal{"bar.sync 1, 64;", "line 8: a barrier for some threads only, or of an unknown number (bar)"},
           Refusal{"bar.sync %r1;", "of an unknown number"},
           Refusal{"bar.sync 0; bar.sync 1;", "line 8: barriers of several numbers (bar)"},
           Refusal{"shfl.sync.bfly.b32 %r2, %r3, 1, 31, -1;", "line 8: threads of a warp work together (shfl)"},
           Refusal{"call.uni f, ();", "a barrier in a function", ".func f() { bar.sync 0; ret; }\n"},
           Refusal{".shared .b8 all[49150]; mov.u32 %r3, all;", "no shared memory is left"},
           Refusal{"mov.b128 {%rd3, %rd4}, %q;", "%q is of a size that can't be saved"},
           Refusal{"addc.u32 %r3, %r3, 0;", "the carry flag is in use"},
       }) {
    const std::string body =
        std::string(".reg .b128 %q; mov.u32 %r2, %tid.x; add.cc.u32 %r3, %r2, %r2;") + kLoop + "\n" + r.body;
    const KernelPlan plan = PlanOf(Module(body, r.before));
    EXPECT_EQ(plan.rung, Rung::kBlocks) << r.body;
    EXPECT_FALSE(plan.complete);
    EXPECT_THAT(plan.reasons, Contains(HasSubstr(r.why))) << r.body;
  }
}

TEST(RewritePlan, WhatIsLeftWithoutASafepointIsNamedBesideTheOthers) {
  const std::string endless =
      ".func f() { .reg .pred %p; .reg .b32 %r; L: ld.volatile.global.u32 %r, [0];\n"
      "setp.eq.u32 %p, %r, 0; @%p bra L; ret; }\n";
  const KernelPlan calls = PlanOf(Module(std::string("call.uni f, ();\n") + kLoop, endless));
  EXPECT_EQ(calls.rung, Rung::kBlocks);
  EXPECT_FALSE(calls.complete);
  EXPECT_THAT(calls.reasons, Contains(HasSubstr("line 5: a loop in a function that it calls (bra)")));

  const KernelPlan apart = PlanOf(Module(
      "mov.u32 %r2, %tid.x; mov.u32 %r1, 0;\n ONE: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra ONE;\n"
      "mov.u32 %r3, 0; bar.sync 0;\n TWO: shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; add.u32 %r3, %r3, 1; setp.lt.u32 "
      "%p2, %r3, 9;"
      " @%p2 bra TWO; bar.sync 0;"));
  EXPECT_EQ(apart.rung, Rung::kSafepoints);
  EXPECT_EQ(apart.safepoints, 1u);
  EXPECT_THAT(apart.reasons, testing::ElementsAre(HasSubstr("line 8: not all threads of a block go round this loop")));
}

TEST(RewritePlan, ALoopInABlockOfItsOwnIsNamed) {
  const KernelPlan plan = PlanOf(Module(std::string("{ ") + kLoop + " }"));
  EXPECT_EQ(plan.rung, Rung::kBlocks);
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("inside a block of its own (bra)")));
}

TEST(RewritePlan, AKernelWithoutLoopsIsCompleteWithBlocksAlone) {
  const KernelPlan plan = PlanOf(Module("bar.sync 0; shfl.sync.bfly.b32 %r2, %r3, 1, 31, -1;"));
  EXPECT_EQ(plan.rung, Rung::kBlocks);
  EXPECT_TRUE(plan.complete);
  EXPECT_TRUE(plan.reasons.empty());
}

TEST(RewritePlan, AddedNamesAreNewAndTheParameterComesLast) {
  const KernelPlan plan =
      PlanOf(Module("mov.u32 %r1, vgpud_block;", ".global .b32 vgpud_block;\n", ".param .u64 a, .param .u32 b"));
  EXPECT_EQ(plan.turn_offset, 16u);
  const auto rewritten = Rewrite(Module("mov.u32 %r1, vgpud_block;", ".global .b32 vgpud_block;\n"));
  EXPECT_THAT(rewritten->text, HasSubstr("vgpud1_turn"));
  for (const char* header : {".entry k { ret; }", ".entry k() { ret; }", ".entry k(.param .u32 a) { ret; }"}) {
    const auto each = Rewrite(std::string(".version 7.8\n.target sm_75\n.address_size 64\n") + header);
    ASSERT_TRUE(each);
    const auto parsed = ptx::Parse(each->text);
    ASSERT_TRUE(parsed) << each->text;
    EXPECT_EQ((*parsed)->functions[0]->params.back().name, "vgpud_turn");
    EXPECT_EQ((*parsed)->functions[0]->params.back().offset, each->kernels[0].turn_offset);
  }
}

TEST(RewritePlan, TheBestRungIsTheCallersChoice) {
  const std::string text = Module(kLoop);
  EXPECT_EQ(PlanOf(text).rung, Rung::kSafepoints);
  EXPECT_EQ(PlanOf(text, {.best = Rung::kBlocks}).rung, Rung::kBlocks);
  const auto none = Rewrite(text, {.best = Rung::kNone});
  EXPECT_EQ(none->text, text);
}

TEST(RewritePlan, WhatIsNoPtxIsAnErrorWithItsLine) {
  const auto rewritten = Rewrite("hello");
  ASSERT_FALSE(rewritten);
  EXPECT_THAT(rewritten.error().text, HasSubstr("line 1"));
}

TEST(Plan, HowManyInstructionsAThreadHasAtMost) {
  EXPECT_EQ(2u, PlanOf(Module("add.u32 %r1, %r1, 1;")).most_instructions);
  EXPECT_EQ(0u, PlanOf(Module("add.u32 %r1, %r1, 1;"), {.best = Rung::kBlocks}).most_instructions)
      << "nobody has looked";
  EXPECT_EQ(0u, PlanOf(Module("L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;")).most_instructions);
  EXPECT_EQ(0u, PlanOf(Module("nanosleep.u32 1000;")).most_instructions);
  EXPECT_EQ(3u, PlanOf(Module("call f;", ".func f() { ret; }\n")).most_instructions);
  EXPECT_EQ(0u, PlanOf(Module("call f;", ".func f() { call f; ret; }\n")).most_instructions) << "it calls itself";
  const std::string by_address = "{ .reg .b64 %f; mov.u64 %f, f; p: .callprototype ()_ (); call %f, (), p; }";
  EXPECT_EQ(5u, PlanOf(Module(by_address, ".func f() { ret; }\n.func g() { .reg .b32 %r; mov.u32 %r, 1; ret; }\n"))
                    .most_instructions)
      << "any of them may be meant";
  EXPECT_EQ(0u,
            PlanOf(Module(by_address, ".func f() { ret; }\n.func g() { call f; call g; ret; }\n")).most_instructions);
}

// A loop whose counter ends for sure is no matter to who launches a part of the blocks at a time.
struct Counted {
  const char* code;
  uint32_t most;
};
class PlanOfCounted : public testing::TestWithParam<Counted> {};

TEST_P(PlanOfCounted, HasABoundWhereItsCounterHasOne) {
  Options options;
  options.pieces = true;
  const KernelPlan plan = PlanOf(Module(GetParam().code), options);
  EXPECT_EQ(GetParam().most, plan.most_instructions);
  EXPECT_EQ(GetParam().most != 0, plan.pieces);
  EXPECT_EQ(GetParam().most != 0 ? Rung::kBlocks : Rung::kSafepoints, plan.rung);
}

constexpr char kNested[] =
    "mov.u32 %r1, 0; M: mov.u32 %r2, 4; L: sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;"
    "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 bra M;";
INSTANTIATE_TEST_SUITE_P(
    , PlanOfCounted,
    testing::Values(
        // Eleven rounds of three, as the test may be in front of the step, and two beside.
        Counted{"mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", 35},
        Counted{"mov.u32 %r1, 0; L: add.s32 %r1, %r1, 3; setp.ne.s32 %p1, %r1, 9; @%p1 bra L;", 17},
        Counted{"mov.u32 %r1, 0; L: add.s32 %r1, %r1, 3; setp.eq.s32 %p1, %r1, 9; @!%p1 bra L;", 17},
        Counted{"mov.u32 %r1, 9; L: add.s32 %r1, %r1, -3; setp.gt.s32 %p1, %r1, 0; @%p1 bra L;", 17},
        Counted{"L: shr.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;", 199},
        Counted{"L: shr.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0; @%p1 bra L;", 199},
        Counted{kNested, 0 + 1 + 5 * (1 + 6 * 3 + 3) + 1},
        // None of these.
        Counted{"L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: add.s32 %r1, %r1, 2; setp.ne.s32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 9; L: add.s32 %r1, %r1, 3; setp.ne.s32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 9; L: sub.u32 %r1, %r1, 2; setp.ge.u32 %p1, %r1, 1; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9000; @%p1 bra L;", 0},
        Counted{"L: shr.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;", 0},
        Counted{"L: shr.s32 %r1, %r1, 1; setp.gt.u32 %p1, %r1, 0; @%p1 bra L;", 0},
        Counted{"L: shr.u32 %r1, %r1, 1; setp.ge.u32 %p1, %r1, 0; @%p1 bra L;", 0},
        Counted{"L: shr.u32 %r1, %r1, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; @%p2 mov.u32 %r1, 0; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: @%p2 add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: @%p2 bra N; add.u32 %r1, %r1, 1; N: setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; @%p2 bra N; L: add.u32 %r1, %r1, 1; N: setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", 0},
        Counted{"mov.u32 %r1, 0; L: bra L;", 0},
        // Around again with what the counter has been left with.
        Counted{"mov.u32 %r1, 0; M: add.u32 %r3, %r3, 1; L: add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 9; @%p1 bra L; "
                "@%p2 bra M;",
                0}));

// As compilers unroll a loop to a parameter: four rounds at a time, and the rest if there is one.
constexpr char kToParameter[] =
    "ld.param.u32 %r1, [n]; and.b32 %r2, %r1, 3; sub.u32 %r3, %r1, %r2;"
    "L: add.s32 %r3, %r3, -4; setp.ne.s32 %p1, %r3, 0; @%p1 bra L;"
    "setp.eq.s32 %p2, %r2, 0; @%p2 bra N; mov.u32 %r4, 1;"
    "M: add.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra M; N:";

TEST(Plan, ABoundThatNeedsTheLaunch) {
  Options options;
  options.pieces = true;
  const auto bound = [&](const std::string& body, uint32_t n, uint32_t threads = 1) {
    const KernelPlan plan = PlanOf(Module(body, "", ".param .u32 n"), options);
    EXPECT_EQ(0u, plan.most_instructions);
    EXPECT_EQ(Rung::kSafepoints, plan.rung);
    EXPECT_EQ(plan.bound.parts.empty(), plan.piece_entry.empty());
    return Evaluate(plan.bound, std::as_bytes(std::span(&n, 1)), {threads, 1, 1});
  };
  EXPECT_EQ(3u + 3 * 3 + 3 + 3 * 3 + 1, bound(kToParameter, 5));
  EXPECT_EQ(3u + 3 * 4 + 3 + 3 * 1 + 1, bound(kToParameter, 8)) << "the second one is not entered";
  EXPECT_EQ(0u, bound(kToParameter, 0)) << "nobody says that the first one is not";
  EXPECT_EQ(30'025u, bound(kToParameter, 40'005));
  EXPECT_EQ(0u, bound(kToParameter, 0x80000000));
  const std::string to_threads =
      "mov.u32 %r1, %ntid.x; mov.u32 %r2, 0; L: add.s32 %r2, %r2, 2; setp.lt.s32 %p1, %r2, %r1; @%p1 bra L;";
  EXPECT_EQ(2u + 3 * 34 + 1, bound(to_threads, 0, 64));
  // What is loaded by each thread, what may not be written yet, and what another round has changed.
  for (const char* code :
       {"ld.global.u32 %r1, [%rd1]; mov.u32 %r2, 0; L: add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %r1; @%p1 bra L;",
        "@%p2 bra K; ld.param.u32 %r1, [n]; K: mov.u32 %r2, 0; L: add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %r1;"
        "@%p1 bra L;",
        "ld.param.u32 %r1, [n]; mov.u32 %r2, 0; L: add.s32 %r2, %r2, 1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r2, %r1;"
        "@%p1 bra L;",
        "ld.param.u32 %r1, [n]; mov.u32 %r2, 0; K: mov.u32 %r3, 0; L: add.s32 %r2, %r2, 1; setp.ne.s32 %p1, %r2, %r1;"
        "@%p1 bra L; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, 9; @%p1 bra K;"})
    EXPECT_EQ(0u, bound(code, 5)) << code;
  const auto text = Rewrite(Module(kToParameter, "", ".param .u32 n"), options)->text;
  EXPECT_NE(std::string::npos, text.find(".visible .entry k$vgpud_piece(.param .u32 n,"));
}

// The program's own kernel beside it has none.
TEST(Plan, ABoundOfThreadsWhereTheProgramHasNone) {
  const ThreadBounds bounds{{"k", 768}};
  const Options options{.keep_originals = true, .most_threads = &bounds};
  const auto count = [&](const std::string& directives, const std::string& what) {
    const auto rewritten = Rewrite(Module("", "", "", directives), options);
    EXPECT_TRUE(ptx::Parse(rewritten->text)) << rewritten->text;
    size_t found = 0;
    for (size_t at = 0; (at = rewritten->text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(1u, count("", ".maxntid 768"));
  EXPECT_EQ(0u, count(".maxntid 256", ".maxntid 768"));
  EXPECT_EQ(2u, count(".maxntid 256", ".maxntid 256"));
}

}  // namespace
}  // namespace vgpud::rewrite
