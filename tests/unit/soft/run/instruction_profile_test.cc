// SPDX-License-Identifier: Apache-2.0
// The profile mode: exact numbers of warp instructions by form, and the same results.
#include "gpu/soft/run/instruction_profile.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

std::map<std::string, uint64_t> Executed(const InstructionProfile& profile) {
  std::map<std::string, uint64_t> executed;
  for (const InstructionProfile::Row& row : profile.Hottest()) executed[row.form] = row.count.executed;
  return executed;
}

// A loop of five rounds, with a guard, in two warps of each of three blocks.
constexpr const char* kLoop = R"(ld.param.u64 %rd1, [out];
mov.u32 %r1, 0;
mov.u32 %r2, 0;
again:
setp.eq.u32 %p1, %r1, 3;
@%p1 add.u32 %r2, %r2, 7;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p2, %r1, 5;
@%p2 bra again;
st.global.u32 [%rd1], %r2;)";

TEST(SoftProfile, EachFormCountsItsWarpInstructions) {
  for (const uint32_t threads : {1u, 3u}) {
    SoftMachine m(BestIsa(), 64 << 20, threads);
    m.gpu.SetProfile();
    ASSERT_EQ(m.LoadBody(".param .u64 out", kLoop).status, CuStatus::kSuccess);
    const GpuVa out = m.Alloc(4);
    const Outcome ran = m.Run("k", {{3, 1, 1}, {64, 1, 1}, 0}, Params().Add(out), 17);
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    EXPECT_THAT(m.Download<uint32_t>(out, 1), ElementsAre(7));
    EXPECT_THAT(
        Executed(*m.gpu.profile()),
        UnorderedElementsAre(Pair("ld.param.u64", 6), Pair("mov.u32", 12), Pair("setp.eq.u32", 30), Pair("add.u32", 60),
                             Pair("setp.lt.u32", 30), Pair("bra", 30), Pair("st.global.u32", 6), Pair("ret", 6)));
  }
}

TEST(SoftProfile, TheFormThatTookMostTimeIsFirstAndTheClockDoesNotCount) {
  SoftMachine m;
  m.gpu.SetProfile();
  ASSERT_EQ(m.LoadBody("", "mov.u32 %r1, 5;\nadd.u32 %r1, %r1, %r1;").status, CuStatus::kSuccess);
  ASSERT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
  const auto rows = m.gpu.profile()->Hottest();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.count.ticks > b.count.ticks; }));

  InstructionProfile alone;
  ProgramCode code;
  code.forms = {"cheap", "dear", "never"};
  code.form_of = {0, 1, 2, 0};
  constexpr uint64_t kMuch = 1'000'000'000;
  const InstructionCount counts[] = {{3, 0}, {2, kMuch}, {0, 0}, {1, kMuch / 2}, {9, 9}};
  alone.Add(code, counts);
  const auto two = alone.Hottest();
  ASSERT_EQ(two.size(), 2u) << "what was not executed is no row, nor is what is behind the code";
  EXPECT_EQ(two[0].form, "dear");
  EXPECT_LE(two[0].count.ticks, kMuch);
  EXPECT_GT(two[0].count.ticks, kMuch / 2) << "a look at the clock takes no second";
  EXPECT_EQ(two[1].form, "cheap");
  EXPECT_EQ(two[1].count.executed, 4u);
}

TEST(SoftProfile, WithoutItNothingIsKept) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody("", "mov.u32 %r1, 5;").status, CuStatus::kSuccess);
  ASSERT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params()).status, CuStatus::kSuccess);
  EXPECT_EQ(m.gpu.profile(), nullptr);
}

}  // namespace
}  // namespace vgpud::soft
