// SPDX-License-Identifier: Apache-2.0
// Modules that no compiler makes: the loader must neither break nor take for ever.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr const char* kHead = ".version 7.8\n.target sm_75\n.address_size 64\n";

TEST(SoftHostile, APredicateTakesNoParameter) {
  SoftMachine m;
  const Outcome loaded = m.LoadBody(".param .u64 out", "ld.param.u64 %p1, [out];");
  EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(loaded.text, HasSubstr("a predicate holds no parameter"));
}

// Each of 40 functions calls each of the others: more paths than can be walked.
TEST(SoftHostile, FunctionsThatAllCallEachOtherLoad) {
  constexpr int kFunctions = 40;
  std::string text = kHead;
  for (int f = 0; f < kFunctions; ++f) text += ".func f" + std::to_string(f) + "();\n";
  for (int f = 0; f < kFunctions; ++f) {
    text += ".func f" + std::to_string(f) + "()\n{\n";
    for (int callee = 0; callee < kFunctions; ++callee) text += "call f" + std::to_string(callee) + ";\n";
    text += "ret;\n}\n";
  }
  text += ".entry k()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, f0;\ncall %rd1, ();\nret;\n}\n";
  SoftMachine m;
  const Outcome loaded = m.Load(text);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  EXPECT_EQ(m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params()).status, CuStatus::kHardwareStackError);
}

// A chain as long as this must not be followed on the host's own stack.
TEST(SoftHostile, ALongChainOfCallsLoads) {
  constexpr int kFunctions = 30'000;
  std::string text = std::string(kHead) + ".func f0()\n{\nret;\n}\n";
  for (int f = 1; f < kFunctions; ++f)
    text += ".func f" + std::to_string(f) + "()\n{\ncall f" + std::to_string(f - 1) + ";\nret;\n}\n";
  text += ".entry small()\n{\ncall f9;\nret;\n}\n";
  text += ".entry large()\n{\ncall f" + std::to_string(kFunctions - 1) + ";\nret;\n}\n";
  SoftMachine m;
  const Outcome loaded = m.Load(text);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  EXPECT_EQ(m.Run("small", {{1, 1, 1}, {1, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
}

// So many blocks and registers that sets of what is alive where would fill the host's memory.
TEST(SoftHostile, ManyRegistersInManyBlocksLoad) {
  constexpr int kBlocks = 20'000;
  std::string text = std::string(kHead) + ".entry k()\n{\n.reg .b32 %r<" + std::to_string(kBlocks + 1) +
                     ">;\n.reg .pred %p<2>;\nsetp.eq.u32 %p1, %r0, 7;\n";
  for (int b = 0; b < kBlocks; ++b) {
    const std::string n = std::to_string(b);
    text += "L" + n + ":\nadd.u32 %r" + n + ", %r" + std::to_string(b + 1) + ", 1;\n@%p1 bra L" +
            std::to_string(kBlocks - 1 - b) + ";\n";
  }
  text += "ret;\n}\n";
  SoftMachine m;
  const Outcome loaded = m.Load(text);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  EXPECT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
}

// An error in a function is one of the kernels that call it by name, however many calls lie between.
TEST(SoftHostile, AnErrorBelowAKernelIsTold) {
  SoftMachine m;
  ASSERT_EQ(m.Load(std::string(kHead) + R"(
.func bad() { .reg .u32 %r<2>; frobnicate.u32 %r1, %r1; ret; }
.func middle() { call bad; ret; }
.func other() { call middle; call other; ret; }
.entry k() { call other; ret; }
.entry good() { ret; }
)")
                .status,
            CuStatus::kSuccess);
  const auto grid = m.gpu.Launch(*m.module->Function("k"), {{1, 1, 1}, {1, 1, 1}, 0}, {}, 0);
  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().status, CuStatus::kIllegalInstruction);
  EXPECT_THAT(grid.error().text, HasSubstr("frobnicate"));
  EXPECT_EQ(m.Run("good", {{1, 1, 1}, {1, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
}

// Blocks `{}` give their .param space back, so many of them take no more than the largest; what they stored stays in
// the warp's own stack.
std::string ManyParamBlocks(int blocks, const std::string& body) {
  std::string text = std::string(kHead) +
                     ".entry k(.param .u64 out)\n{\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\n" +
                     "mov.u64 %rd2, 0x4141414141414141;\n";
  for (int b = 0; b < blocks; ++b)
    text += "{ .param .b8 p" + std::to_string(b) + "[32764]; " + (b == blocks - 1 ? body : "") + " }\n";
  return text + "ret;\n}\n";
}

TEST(SoftHostile, ParameterSpaceOfEndedBlocksIsReused) {
  // So many that their sum does not fit 32 bits when it is added up instead.
  for (const int blocks : {1, 2, 4096, 4097}) {
    SoftMachine m;
    const Outcome loaded = m.Load(ManyParamBlocks(blocks, ""));
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const CodeFunction& kernel = *static_cast<SoftModule&>(*m.module).program()->functions[0];
    EXPECT_GE(kernel.block_bytes, 32764u) << blocks;
    EXPECT_LE(kernel.block_bytes, 32768u) << blocks;
    EXPECT_GE(kernel.frame_bytes, kernel.params_at + kernel.block_bytes * kLanes) << blocks;
  }
}

TEST(SoftHostile, ParameterSpaceOfManyBlocksIsTheKernelsOwn) {
  std::string body;
  const std::string last = "p4095";
  for (int at = 0; at < 32760; at += 8) body += "st.param.u64 [" + last + "+" + std::to_string(at) + "], %rd2;\n";
  body += "ld.param.u64 %rd3, [" + last + "+32752]; st.global.u64 [%rd1], %rd3;";
  SoftMachine m;
  const Outcome loaded = m.Load(ManyParamBlocks(4096, body));
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa out = m.Alloc(8);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(m.Download<uint64_t>(out, 1)[0], 0x4141414141414141u);
}

TEST(SoftHostile, AKernelWithoutABodyCannotBeLaunched) {
  SoftMachine m;
  ASSERT_EQ(m.Load(std::string(kHead) + ".extern .entry k();\n.entry good()\n{\nret;\n}\n").status, CuStatus::kSuccess);
  const auto grid = m.gpu.Launch(*m.module->Function("k"), {{1, 1, 1}, {1, 1, 1}, 0}, {}, 0);
  ASSERT_FALSE(grid);
  EXPECT_THAT(grid.error().text, HasSubstr("without a body"));
  EXPECT_EQ(m.Run("good", {{1, 1, 1}, {1, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
}

// The product of the three is 2^64.
TEST(SoftHostile, ThreadCountsWhoseProductWrapsAreALimitAboveAnyOther) {
  SoftMachine m;
  ASSERT_EQ(m.Load(std::string(kHead) + ".entry k() .maxntid 2147483648, 2147483648, 4\n{\nret;\n}\n").status,
            CuStatus::kSuccess);
  EXPECT_EQ(m.module->Function("k")->max_threads, 1024u);
  EXPECT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
}

// Every place, width and kind of slot: what is known of them is looked up, not searched through.
TEST(SoftHostile, AKernelMayReadEveryByteOfItsParameters) {
  std::string text = std::string(kHead) + ".entry k(.param .b8 a[32764])\n{\n.reg .b32 %r<2>;\n.reg .b64 %d<2>;\n";
  for (int at = 0; at < 32760; ++at) {
    for (const char* type : {"u8 %r0", "s8 %r0", "u16 %r0", "s16 %d0", "u32 %d0"})
      text += "ld.param." + std::string(type) + ", [a+" + std::to_string(at) + "];\n";
  }
  SoftMachine m;
  const Outcome loaded = m.Load(text + "ret;\n}\n");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  ASSERT_TRUE(m.module->NeedsLoading("k"));
  ASSERT_TRUE(m.module->LoadFunction("k"));
  const FunctionInfo* info = m.module->Function("k");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(static_cast<SoftModule&>(*m.module).Find(*info).code->param_slots.size(), 5u * 32760);
}

}  // namespace
}  // namespace vgpud::soft
