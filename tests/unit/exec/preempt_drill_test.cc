// SPDX-License-Identifier: Apache-2.0
// The executor's test mode: when it cuts, and what it keeps account of.
#include "gpu/exec/preempt_drill.h"

#include <gtest/gtest.h>

#include <array>

namespace vgpud {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(PreemptDrill, CutsEverySoManyInstructionsAcrossSteps) {
  PreemptDrill drill(10);
  std::atomic<uint32_t> grant{1};
  uint64_t instructions = 0;
  for (int step = 0; step < 100; ++step) {
    const StopWord stop = drill.Arm({&grant, 1});
    ASSERT_FALSE(stop.Stopped());
    for (int n = 0; n < 7 && !stop.Stopped(); ++n, ++instructions) stop.trip->Count();
    const bool cut = stop.Stopped();
    EXPECT_EQ(drill.Cut(), cut);
  }
  EXPECT_EQ(drill.cuts(), instructions / 10);
  EXPECT_GT(drill.cuts(), 40u);
}

TEST(PreemptDrill, ARevokeThatIsThereAlreadyIsSeen) {
  PreemptDrill drill(10);
  std::atomic<uint32_t> grant{2};
  EXPECT_TRUE(drill.Arm({&grant, 1}).Stopped());
}

TEST(PreemptDrill, WithoutCutsTheWordIsTheGrant) {
  PreemptDrill drill(0);
  std::atomic<uint32_t> grant{1};
  const StopWord stop = drill.Arm({&grant, 1});
  EXPECT_EQ(stop.word, &grant);
  EXPECT_EQ(stop.trip, nullptr);
  EXPECT_FALSE(drill.Cut());
}

TEST(PreemptDrill, TheAccountDoesNotDependOnTheOrder) {
  PreemptDrill a(0);
  a.AddCopy(GpuVa{100}, BytesOf("one"));
  a.AddCopy(GpuVa{200}, BytesOf("two"));
  a.AddPrinted(BytesOf("x\ny\n"));
  PreemptDrill b(0);
  b.AddPrinted(BytesOf("y\n"));
  b.AddCopy(GpuVa{200}, BytesOf("two"));
  b.AddPrinted(BytesOf("x"));
  b.AddPrinted(BytesOf("\n"));
  b.AddCopy(GpuVa{100}, BytesOf("one"));
  EXPECT_EQ(a.account(), b.account());
}

TEST(PreemptDrill, TheAccountDependsOnPlaceBytesLengthAndText) {
  const auto account = [](uint64_t at, std::string_view copied, std::string_view printed) {
    PreemptDrill drill(0);
    drill.AddCopy(GpuVa{at}, BytesOf(copied));
    drill.AddPrinted(BytesOf(printed));
    return drill.account();
  };
  const uint64_t one = account(100, "one", "x\n");
  EXPECT_NE(one, account(101, "one", "x\n"));
  EXPECT_NE(one, account(100, "onf", "x\n"));
  EXPECT_NE(one, account(100, std::string_view("one\0", 4), "x\n"));
  EXPECT_NE(one, account(100, "one", "z\n"));
}

}  // namespace
}  // namespace vgpud
