// Modules that no compiler makes: the loader must neither break nor take for ever.
#include <gmock/gmock.h>

#include "tests/unit/soft/soft_fixture.h"

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

}  // namespace
}  // namespace vgpud::soft
