// SPDX-License-Identifier: Apache-2.0
// Local memory that functions take while they run (PTX ISA, "Stack Manipulation Instructions").
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/form_case.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr uint32_t kThreads = 32;
constexpr uint32_t kMost = (16 << 10) - 16;  // bytes that a thread can take

// Result of 64 bits per lane: %rd1 of `body`, which finds the lane in %r30. Runs in pieces of `budget`.
struct Ran {
  Outcome outcome;
  std::vector<uint64_t> lanes;
};
Ran RunLanes(const std::string& body, const std::string& functions = "", uint64_t budget = 7) {
  SoftMachine m;
  const Outcome loaded = m.LoadBody(".param .u64 out",
                                    "ld.param.u64 %rd29, [out]; mov.u32 %r30, %tid.x; mul.wide.u32 %rd28, %r30, 8;"
                                    "add.u64 %rd28, %rd29, %rd28; mov.u64 %rd1, 0;\n" +
                                        body + "\nst.global.u64 [%rd28], %rd1;",
                                    functions);
  EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  if (loaded.status != CuStatus::kSuccess) return {loaded, std::vector<uint64_t>(kThreads)};
  const GpuVa out = m.Alloc(8 * kThreads);
  Outcome ran = m.Run("k", {{3, 1, 1}, {kThreads, 1, 1}, 0}, Params().Add(out), budget, 20'000'000);
  return {std::move(ran), m.Download<uint64_t>(out, kThreads)};
}

// Takes (n + 1) * 4 bytes, writes n + i into word i, and gives their sum.
constexpr const char* kSum = R"(
.func (.param .b64 res) sum(.param .b32 n)
{
  .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<4>;
  ld.param.u32 %r1, [n]; add.u32 %r2, %r1, 1; mul.wide.u32 %rd1, %r2, 4;
  alloca.u64 %rd2, %rd1, 16;
  and.b64 %rd7, %rd2, 15; setp.ne.u64 %p2, %rd7, 0; @%p2 trap;
  mov.u32 %r3, 0;
WRITE:
  mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd2, %rd3; add.u32 %r4, %r1, %r3; st.local.u32 [%rd3], %r4;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra WRITE;
  mov.u32 %r3, 0; mov.u64 %rd5, 0; cvta.local.u64 %rd6, %rd2;
READ:
  mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd6, %rd3; ld.u32 %r4, [%rd3]; cvt.u64.u32 %rd4, %r4; add.u64 %rd5, %rd5, %rd4;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra READ;
  st.param.b64 [res], %rd5;
  setp.eq.u32 %p3, %r1, 5; @%p3 ret;
}
)";
uint64_t SumOf(uint64_t n) { return n * (n + 1) + n * (n + 1) / 2; }
constexpr const char* kCallSum =
    "{ .param .b32 a; .param .b64 r; st.param.b32 [a], %r1; call (r), sum, (a); ld.param.b64 %rd2, [r]; }\n";

TEST(SoftAlloca, EachLaneHasItsOwn) {
  const Ran ran = RunLanes(std::string("mov.u32 %r1, %r30;\n") + kCallSum + "mov.u64 %rd1, %rd2;", kSum);
  ASSERT_EQ(ran.outcome.status, CuStatus::kSuccess) << ran.outcome.text;
  for (uint32_t lane = 0; lane < kThreads; ++lane) EXPECT_EQ(ran.lanes[lane], SumOf(lane)) << lane;
}

// A thousand calls take sixty times what a thread can have.
TEST(SoftAlloca, AFunctionGivesItBackWhereverItReturns) {
  const Ran ran =
      RunLanes(std::string("mov.u32 %r2, 0;\nAGAIN: rem.u32 %r1, %r2, 250;\n") + kCallSum +
                   "add.u64 %rd1, %rd1, %rd2; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1000; @%p1 bra AGAIN;",
               kSum, 1013);
  ASSERT_EQ(ran.outcome.status, CuStatus::kSuccess) << ran.outcome.text;
  uint64_t expected = 0;
  for (uint32_t n = 0; n < 1000; ++n) expected += SumOf(n % 250);
  for (uint32_t lane = 0; lane < kThreads; ++lane) EXPECT_EQ(ran.lanes[lane], expected) << lane;
}

// What the kernel took before stays as it is while a function takes and gives back, in lanes that go different ways.
TEST(SoftAlloca, WhatCallersTookStays) {
  const Ran ran =
      RunLanes(std::string("alloca.u64 %rd3, 64; mul.wide.u32 %rd4, %r30, 77; st.local.u64 [%rd3+56], %rd4;\n"
                           "and.b32 %r3, %r30, 1; setp.eq.u32 %p1, %r3, 1; mov.u32 %r1, 100; @%p1 bra ODD;\n") +
                   kCallSum + "bra DONE;\nODD: mov.u32 %r1, 3;\n" + kCallSum +
                   "DONE: ld.local.u64 %rd5, [%rd3+56]; add.u64 %rd1, %rd2, %rd5;",
               kSum);
  ASSERT_EQ(ran.outcome.status, CuStatus::kSuccess) << ran.outcome.text;
  for (uint32_t lane = 0; lane < kThreads; ++lane)
    EXPECT_EQ(ran.lanes[lane], SumOf(lane % 2 == 1 ? 3 : 100) + lane * 77) << lane;
}

TEST(SoftAlloca, StackrestoreGivesBackWhatWasTakenSinceStacksave) {
  const Ran ran = RunLanes(
      "mov.u32 %r2, 0; mov.u64 %rd6, 0;\n"
      "AGAIN: stacksave.u64 %rd3; alloca.u64 %rd4, 4000, 8; alloca.u64 %rd5, 5000, 4096;\n"
      "st.local.u64 [%rd4+3992], %rd5; st.local.u64 [%rd5+4992], %rd4; ld.local.u64 %rd7, [%rd4+3992];\n"
      "setp.ne.u64 %p1, %rd7, %rd5; @%p1 trap; and.b64 %rd7, %rd5, 4095; setp.ne.u64 %p1, %rd7, 0; @%p1 trap;\n"
      "stackrestore.u64 %rd3; setp.eq.u32 %p2, %r2, 0; @%p2 mov.u64 %rd6, %rd4; setp.ne.u64 %p1, %rd6, %rd4; @%p1 "
      "trap;\n"
      "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra AGAIN; cvt.u64.u32 %rd1, %r2;");
  ASSERT_EQ(ran.outcome.status, CuStatus::kSuccess) << ran.outcome.text;
  EXPECT_THAT(ran.lanes, testing::Each(100));
}

TEST(SoftAlloca, RegistersOf32BitsWork) {
  const Ran ran = RunLanes(
      "stacksave.u32 %r1; alloca.u32 %r2, %r30, 8; alloca.u32 %r3, 8; st.local.u32 [%r3], %r30;\n"
      "ld.local.u32 %r4, [%r3]; stackrestore.u32 %r1; cvt.u64.u32 %rd1, %r4;");
  ASSERT_EQ(ran.outcome.status, CuStatus::kSuccess) << ran.outcome.text;
  for (uint32_t lane = 0; lane < kThreads; ++lane) EXPECT_EQ(ran.lanes[lane], lane);
}

TEST(SoftAlloca, AllOfItCanBeTakenAndNoByteMore) {
  const Ran all =
      RunLanes(fmt::format("alloca.u64 %rd2, {}, 8; st.local.u64 [%rd2], 5; ld.local.u64 %rd1, [%rd2];", kMost));
  ASSERT_EQ(all.outcome.status, CuStatus::kSuccess) << all.outcome.text;
  EXPECT_THAT(all.lanes, testing::Each(5));
  for (const std::string& size :
       {std::to_string(kMost + 1), std::string("0xffffffffffffffff"), std::string("0x100000008")}) {
    const Ran more = RunLanes("alloca.u64 %rd2, " + size + ", 8;");
    EXPECT_EQ(more.outcome.status, CuStatus::kHardwareStackError) << size;
    EXPECT_THAT(more.outcome.text,
                HasSubstr(fmt::format("{0} of the {0} bytes that a thread can take are left", kMost)));
  }
}

// Takes 64 bytes at each level and never stops going down.
TEST(SoftAlloca, ARecursionThatTakesTooMuchIsStopped) {
  const Ran ran = RunLanes(
      "call down, ();",
      ".func down() { .reg .b64 %rd<3>; alloca.u64 %rd1, 64, 16; st.local.u64 [%rd1], 1; call down, (); ret; }\n");
  EXPECT_EQ(ran.outcome.status, CuStatus::kHardwareStackError) << ran.outcome.text;
}

// The word that says how much is taken lies in the thread's own memory.
TEST(SoftAlloca, AKernelThatOverwritesTheCountHarmsItselfOnly) {
  const Ran ran = RunLanes(
      "alloca.u64 %rd2, 0, 8; st.local.u32 [%rd2], 0xffffffff; alloca.u64 %rd3, 16, 8; st.local.u64 [%rd3], 1;");
  EXPECT_EQ(ran.outcome.status, CuStatus::kHardwareStackError) << ran.outcome.text;
  const Ran restored = RunLanes("mov.u64 %rd2, 0xfffffffffffffff0; stackrestore.u64 %rd2;");
  EXPECT_EQ(restored.outcome.status, CuStatus::kHardwareStackError);
  EXPECT_THAT(restored.outcome.text, HasSubstr("which stacksave did not give"));
}

TEST(SoftAlloca, Forms) {
  for (const FormCase& c :
       {FormCase{"alloca.u64 %rd1, %rd2, 16;", ""}, FormCase{"alloca.u32 %r1, 8;", ""},
        FormCase{"alloca.u64 %rd1, 8, 3;", "a power of two"}, FormCase{"alloca.u64 %rd1, 8, %r1;", "a power of two"},
        FormCase{"alloca.u64 %rd1, 8, 8192;", "a power of two"}, FormCase{"alloca.u16 %rs1, 8;", kUnknown},
        FormCase{"alloca.u64 %rd1;", kUnknown}, FormCase{"stacksave.u64 %rd1, %rd2;", kUnknown},
        FormCase{"stacksave.f32 %r1;", kUnknown}, FormCase{"stackrestore.u64;", kUnknown},
        FormCase{"stackrestore.u64 %p1;", "predicate"}, FormCase{"stacksave.u64 %p1;", kWrongKind}})
    Expect(c);
}

}  // namespace
}  // namespace vgpud::soft
