// SPDX-License-Identifier: Apache-2.0
// Where the frames of a kernel and of what it calls lie, and how deep recursion may go.
#include "gpu/soft/code/frame_layout.h"

#include <gtest/gtest.h>

#include "gpu/soft/decode/module_image.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

TEST(SoftFrames, RecursionHasAMegabyteAndAtLeast24Levels) {
  struct Case {
    uint64_t bytes, wanted, levels;
  };
  constexpr uint64_t kMegabyte = 1 << 20;
  for (const Case& c : {Case{0, 1024, 1024},
                        {1, 1024, 1024},
                        {1024, 1024, 1024},
                        {1024, 1025, 1024},
                        {1025, 1024, 1023},
                        {kMegabyte / 25, 1024, 25},
                        {kMegabyte / 24, 1024, 24},
                        {kMegabyte / 24 + 1, 1024, 24},
                        {kMegabyte, 1024, 24},
                        {kMegabyte, 5, 5},
                        {64 * kMegabyte / 24, 1024, 24},
                        {64 * kMegabyte / 24 + 1, 1024, 23},
                        {32 * kMegabyte, 1024, 2},
                        {64 * kMegabyte, 1024, 1},
                        {64 * kMegabyte + 1, 1024, 1},
                        {1024, 1, 1},
                        {1024, 0, 1}})
    EXPECT_EQ(FittingLevels(c.bytes, c.wanted), c.levels) << c.bytes << ", " << c.wanted;
}

class SoftFrameLayout : public testing::Test {
 protected:
  // Functions in the order of the text; the last one is the kernel.
  FrameLayout LayOut(const std::string& text) {
    const auto image =
        MakeModuleImage({".version 9.0\n.target sm_75\n.address_size 64\n" + text}, OpTable::Of(BestIsa()));
    EXPECT_TRUE(image) << image.error().text;
    program = MakeProgram((*image)->code, std::vector<uint64_t>((*image)->variables.size(), 0x10000));
    return LayOutFrames(*program, *program->functions.back());
  }
  uint32_t Bytes(size_t function) const { return program->functions[function]->frame_bytes; }
  std::shared_ptr<Program> program;
};

TEST_F(SoftFrameLayout, AKernelThatCallsNothingHasItsFrameAlone) {
  const FrameLayout layout = LayOut(".func f() { ret; }\n.entry k() { .reg .b32 a; mov.u32 a, 1; ret; }");
  EXPECT_TRUE(layout.base.empty());
  EXPECT_EQ(layout.level_bytes, 0u);
  EXPECT_EQ(layout.stack_bytes, Bytes(1));
  EXPECT_GT(layout.stack_bytes, 0u);
}

TEST_F(SoftFrameLayout, CallersLieBeforeWhatTheyCall) {
  const FrameLayout layout = LayOut(
      ".func h() { .reg .b64 a; mov.u64 a, 1; ret; }\n.func unused() { call h; ret; }\n"
      ".func g() { .reg .b32 a; mov.u32 a, 1; call h; ret; }\n.func f() { call g; call h; ret; }\n"
      ".entry other() { ret; }\n.entry k() { call f; ret; }");
  ASSERT_EQ(layout.base.size(), 6u);
  EXPECT_EQ(layout.base[5], 0u);
  EXPECT_EQ(layout.base[3], Bytes(5));
  EXPECT_EQ(layout.base[2], Bytes(5) + Bytes(3));
  EXPECT_EQ(layout.base[0], Bytes(5) + Bytes(3) + Bytes(2));
  EXPECT_EQ(layout.base[1], FrameLayout::kNone);
  EXPECT_EQ(layout.base[4], FrameLayout::kNone);
  EXPECT_EQ(layout.level_bytes, Bytes(3) + Bytes(2) + Bytes(0));
  EXPECT_EQ(layout.stack_bytes, Bytes(5) + layout.level_bytes);
  // On the same level as its caller.
  EXPECT_EQ(layout.Callee(0, 5, 3), layout.base[3]);
  EXPECT_EQ(layout.Callee(layout.base[3], 3, 0), layout.base[0]);
}

TEST_F(SoftFrameLayout, ACircleOfCallsHasLevels) {
  const FrameLayout layout = LayOut(
      ".func f();\n.func g() { .reg .b32 a; mov.u32 a, 1; call f; ret; }\n"
      ".func f() { .reg .b64 a; mov.u64 a, 1; call g; ret; }\n.entry k() { call f; ret; }");
  const auto kernel = static_cast<uint32_t>(program->functions.size() - 1);
  const uint32_t f = *program->FindFunction("f");
  const uint32_t g = *program->FindFunction("g");
  EXPECT_EQ(layout.base[f], Bytes(kernel));
  EXPECT_EQ(layout.base[g], Bytes(kernel) + Bytes(f));
  EXPECT_EQ(layout.level_bytes, Bytes(f) + Bytes(g));
  const uint64_t levels = std::min<uint64_t>(1024, (1 << 20) / (Bytes(kernel) + layout.level_bytes));
  EXPECT_EQ(program->functions[kernel]->levels, levels);
  EXPECT_EQ(layout.stack_bytes, Bytes(kernel) + levels * layout.level_bytes);
  // The call that closes the circle goes to the next level.
  EXPECT_EQ(layout.Callee(layout.base[f], f, g), layout.base[g]);
  EXPECT_EQ(layout.Callee(layout.base[g], g, f), layout.base[f] + layout.level_bytes);
  EXPECT_EQ(layout.Callee(layout.base[g] + layout.level_bytes, g, f), layout.base[f] + 2 * layout.level_bytes);
  EXPECT_EQ(layout.Callee(layout.base[f], f, f), layout.base[f] + layout.level_bytes);
}

TEST_F(SoftFrameLayout, ACallThroughAPointerReachesAllThatIsNoKernel) {
  const FrameLayout layout = LayOut(
      ".func f() { ret; }\n.func g() { call f; ret; }\n.entry other() { ret; }\n"
      ".entry k() { .reg .b64 a; mov.u64 a, f; call a, (); call a, (); ret; }");
  EXPECT_NE(layout.base[0], FrameLayout::kNone);
  EXPECT_NE(layout.base[1], FrameLayout::kNone);
  EXPECT_EQ(layout.base[2], FrameLayout::kNone);
  EXPECT_EQ(layout.base[3], 0u);
  EXPECT_EQ(layout.level_bytes, Bytes(0) + Bytes(1));
}

// A kernel of one function that calls itself: what it may need of local memory bounds the levels too.
TEST_F(SoftFrameLayout, LocalMemoryBoundsRecursion) {
  struct Case {
    const char* local;
    uint32_t levels, total;
  };
  for (const Case& c : {Case{"1024", 512, 512 << 10}, {"65536", 8, 512 << 10}, {"524288", 1, 512 << 10}}) {
    LayOut(".func f() { .local .b8 room[" + std::string(c.local) +
           "]; .reg .b32 a; st.local.u32 [room], a; call f; ret; }\n.entry k() { call f; ret; }");
    EXPECT_EQ(program->functions[1]->levels, c.levels) << c.local;
    EXPECT_EQ(program->functions[1]->local_total, c.total) << c.local;
    EXPECT_EQ(program->functions[1]->info.local_bytes, c.total) << c.local;
  }
}

// What a kernel needs of local memory is the most that lies below each other.
TEST_F(SoftFrameLayout, LocalMemoryIsThatOfTheDeepestCall) {
  LayOut(
      ".func a() { .local .b8 l[100]; ret; }\n.func b() { .local .b8 l[40]; call a; ret; }\n"
      ".func c() { .local .b8 l[120]; ret; }\n.entry k() { .local .b8 l[8]; call c; call b; ret; }");
  // Each in units of 16 bytes: 16 + 48 + 112.
  EXPECT_EQ(program->functions[3]->local_total, 176u);
  EXPECT_EQ(program->functions[3]->levels, 1u);
}

TEST_F(SoftFrameLayout, MoreLocalMemoryThanThereIsIsAnErrorOfTheKernel) {
  const auto loaded = [](const std::string& bytes) {
    SoftMachine m;
    return m.Load(".version 9.0\n.target sm_75\n.address_size 64\n.entry k() { .local .b8 room[" + bytes + "]; ret; }");
  };
  EXPECT_EQ(loaded("524288").status, CuStatus::kSuccess);
  const Outcome refused = loaded("524289");
  EXPECT_EQ(refused.status, CuStatus::kInvalidPtx);
  EXPECT_NE(refused.text.find("of stack and 524304 of local memory: too much"), std::string::npos) << refused.text;
}

}  // namespace
}  // namespace vgpud::soft
