// SPDX-License-Identifier: Apache-2.0
// The test mode of vgpud-exec: when it cuts, and what it keeps account of.
#include "gpu/exec/drill/preempt_drill.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>

namespace vgpud::exec {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(PreemptDrill, CutsEverySoManyInstructionsAcrossSteps) {
  PreemptDrill drill(10);
  std::atomic<uint32_t> grant{1};
  uint64_t instructions = 0;
  for (int step = 0; step < 100; ++step) {
    const StopWord stop = drill.Arm({&grant, 1});
    ASSERT_FALSE(stop.Stopped());
    for (int n = 0; n < 7 && !stop.Stopped(); ++n, ++instructions) drill.trip()->Count();
    const bool cut = stop.Stopped();
    EXPECT_EQ(drill.CountCut(), cut);
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
  EXPECT_EQ(drill.trip(), nullptr);
  EXPECT_FALSE(drill.CountCut());
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

TEST(PreemptDrill, TheReportHasAllFigures) {
  PreemptDrill drill(64);
  EXPECT_EQ("preempt drill: every=64 cuts=0 instructions=0 copied=0 printed=0 account=0000000000000000",
            drill.Report());
  drill.CountInstructions(5);
  drill.CountInstructions(7);
  drill.AddCopy(GpuVa{100}, BytesOf("one"));
  drill.AddCopy(GpuVa{100}, BytesOf("four"));
  drill.AddPrinted(BytesOf("ab"));
  const std::string report = drill.Report();
  EXPECT_NE(std::string::npos, report.find("every=64 cuts=0 instructions=12 copied=7 printed=2 account=")) << report;
  EXPECT_EQ(fmt::format("{:016x}", drill.account()), report.substr(report.size() - 16));
}

TEST(PreemptDrill, ALineCountsWhenItIsWhole) {
  PreemptDrill drill(0);
  drill.AddPrinted(BytesOf("half"));
  EXPECT_EQ(0u, drill.account());
  drill.AddPrinted(BytesOf("\n"));
  const uint64_t one = drill.account();
  EXPECT_NE(0u, one);
  drill.AddPrinted(BytesOf("half\n"));
  EXPECT_EQ(2 * one, drill.account()) << "twice the same is twice as much";
}

// So that reports of two builds can be compared: the hash is what it was.
TEST(PreemptDrill, TheAccountOfACopyIsAlwaysTheSame) {
  const auto hash = [](uint64_t seed, std::string_view bytes) {
    uint64_t h = seed ^ (0x9e3779b97f4a7c15 * bytes.size());
    for (size_t at = 0; at < bytes.size(); at += 8) {
      uint64_t word = 0;
      for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
        word |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
      h = (h ^ word) * 0xff51afd7ed558ccd;
      h ^= h >> 32;
    }
    return h;
  };
  for (const std::string_view bytes : {"", "1234567", "12345678", "123456789", "0123456789abcdef0"}) {
    PreemptDrill drill(0);
    drill.AddCopy(GpuVa{77}, BytesOf(bytes));
    EXPECT_EQ(hash(77, bytes), drill.account()) << bytes;
  }
  PreemptDrill drill(0);
  drill.AddPrinted(BytesOf("a line\n"));
  EXPECT_EQ(hash(1, "a line\n"), drill.account());
}

TEST(PreemptDrill, ACutIsSeenOnce) {
  PreemptDrill drill(3);
  std::atomic<uint32_t> grant{1};
  const StopWord stop = drill.Arm({&grant, 1});
  EXPECT_FALSE(drill.CountCut());
  for (int n = 0; n < 3; ++n) {
    EXPECT_FALSE(stop.Stopped()) << n;
    drill.trip()->Count();
  }
  EXPECT_TRUE(stop.Stopped());
  EXPECT_TRUE(drill.CountCut());
  EXPECT_FALSE(drill.CountCut());
  EXPECT_EQ(1u, drill.cuts());
}

}  // namespace
}  // namespace vgpud::exec
