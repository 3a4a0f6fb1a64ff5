// SPDX-License-Identifier: Apache-2.0
// Leaving and resuming a grid: bit-exact whatever the cuts are, and nothing runs after the request.
#include <cmath>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

class SoftPreempt : public testing::TestWithParam<Isa> {};

struct MatMul {
  explicit MatMul(Isa isa) : m(isa) {
    const Outcome loaded = m.Load(ReadPtx("matmul"));
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    std::vector<float> a(kSize * kSize);
    for (size_t n = 0; n < a.size(); ++n) a[n] = std::sin(static_cast<float>(n));
    da = m.Upload(a);
    dc = m.Alloc(kSize * kSize * 4);
  }
  std::unique_ptr<GpuGrid> Launch() {
    return m.Launch("matmul", {{kSize / 16, kSize / 16, 1}, {16, 16, 1}, 0},
                    Params().Add(da).Add(da).Add(dc).Add(kSize).Add(kSize));
  }
  std::vector<uint32_t> Result() { return m.Download<uint32_t>(dc, kSize * kSize); }
  static constexpr uint32_t kSize = 64;
  SoftMachine m;
  GpuVa da{};
  GpuVa dc{};
};

TEST_P(SoftPreempt, MatMulCutAtEveryInstructionIsBitIdentical) {
  MatMul whole(GetParam());
  const Outcome undisturbed = whole.m.Finish(*whole.Launch());
  ASSERT_EQ(undisturbed.status, CuStatus::kSuccess) << undisturbed.text;

  for (const uint64_t budget : {1, 7, 1000}) {
    MatMul cut(GetParam());
    const Outcome ran = cut.m.Finish(*cut.Launch(), budget);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    EXPECT_EQ(ran.instructions, undisturbed.instructions) << budget;
    EXPECT_EQ(cut.Result(), whole.Result()) << budget;
  }
}

TEST_P(SoftPreempt, AWordThatHasChangedRunsNothing) {
  MatMul cut(GetParam());
  const auto grid = cut.Launch();
  std::atomic<uint32_t> word{5};
  const auto r = grid->Run({&word, 4}, 1000);
  ASSERT_TRUE(r);
  EXPECT_EQ(*r, GpuGrid::Progress::kStopped);
  EXPECT_EQ(grid->warp_instructions(), 0u);
}

TEST_P(SoftPreempt, BudgetIsCountedExactly) {
  MatMul cut(GetParam());
  const auto grid = cut.Launch();
  const auto r = grid->Run({&cut.m.word, 0}, 1234);
  ASSERT_TRUE(r);
  EXPECT_EQ(*r, GpuGrid::Progress::kYield);
  EXPECT_EQ(grid->warp_instructions(), 1234u);
}

// The kernel itself changes the stop word; the instruction after it must not run. Thousands of times.
TEST_P(SoftPreempt, NothingRunsAfterTheInstructionThatStops) {
  SoftMachine m(GetParam());
  const Outcome loaded = m.LoadBody(".param .u64 word, .param .u64 out", R"(
    ld.param.u64 %rd1, [word];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, 0;
  loop:
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd2], %r1;
    setp.lt.u32 %p1, %r1, 3000;
    @%p1 bra loop;)");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa word_va = m.Alloc(64);
  const GpuVa out = m.Alloc(64);
  auto* word = reinterpret_cast<std::atomic<uint32_t>*>(m.gpu.HostPointer(word_va));
  const auto grid = m.Launch("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(word_va).Add(out));
  for (uint32_t round = 1; round <= 3000; ++round) {
    const auto r = grid->Run({word, round - 1}, 1'000'000);
    ASSERT_TRUE(r);
    ASSERT_EQ(*r, GpuGrid::Progress::kStopped);
    ASSERT_EQ(word->load(), round);
    // The store behind it has not happened, and the count says so: 3 instructions first, 5 per round, stopped at the
    // 2nd.
    ASSERT_EQ(m.Download<uint32_t>(out, 1)[0], round - 1);
    ASSERT_EQ(grid->warp_instructions(), 3 + 5 * (round - 1) + 2);
  }
  const auto r = grid->Run({word, 3000}, 1'000'000);
  ASSERT_TRUE(r);
  EXPECT_EQ(*r, GpuGrid::Progress::kDone);
  EXPECT_EQ(m.Download<uint32_t>(out, 1)[0], 3000u);
}

TEST_P(SoftPreempt, EndlessKernelStopsAndAnotherGridRuns) {
  SoftMachine m(GetParam());
  ASSERT_EQ(m.LoadBody("", "loop:\n bra loop;").status, CuStatus::kSuccess);
  const auto endless = m.Launch("k", {{1, 1, 1}, {64, 1, 1}, 0}, Params());
  const auto r = endless->Run({&m.word, 0}, 100'000);
  ASSERT_TRUE(r);
  EXPECT_EQ(*r, GpuGrid::Progress::kYield);
  MatMul other(GetParam());
  EXPECT_EQ(other.m.Finish(*other.Launch()).status, CuStatus::kSuccess);
}

INSTANTIATE_TEST_SUITE_P(, SoftPreempt, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

}  // namespace
}  // namespace vgpud::soft
