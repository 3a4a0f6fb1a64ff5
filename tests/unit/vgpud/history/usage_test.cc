// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/usage.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace vgpud::daemon {
namespace {

TEST(UsageTest, TheseFiguresAreKeptAndTheseReported) {
  std::string kept, not_reported, worst;
  for (const VfStatistic* row : UsageStatistics()) {
    kept += std::string(row->about.column) + " ";
    if (!row->about.reported) not_reported += std::string(row->about.column) + " ";
    if (row->about.worst) worst += std::string(row->about.column) + " ";
  }
  EXPECT_EQ(
      "entitled_ns received_ns borrowed_ns unclaimed_ns runnable_ns waited_ns turns forced_preemptions overrun_ns "
      "worst_overrun_ns hangs host_stalls active_ns active_gpu_ns active_thinking_ns active_others_ns "
      "active_switching_ns active_stalled_ns active_held_ns kernels warp_instructions executor_preempts ",
      kept);
  EXPECT_EQ("worst_overrun_ns executor_preempts ", not_reported);
  EXPECT_EQ("worst_overrun_ns ", worst);
}

TEST(UsageTest, FiguresOfTwoTimesAddUpAndTheWorstIsTheWorseOfTheTwo) {
  VfStats total, more;
  uint64_t value = 0;
  for (const VfStatistic& row : VfStatistics()) {
    row.set(total, 100 + ++value);
    row.set(more, 10);
  }
  for (const VfHistogram& histogram : VfHistograms()) {
    histogram.edit(total).Add(1'000);
    histogram.edit(more).Add(2'000);
    histogram.edit(more).Add(3'000);
  }
  AddUsage(total, more);
  value = 100;
  for (const VfStatistic& row : VfStatistics()) {
    ++value;
    const bool sum = row.about.column != nullptr && !row.about.worst;
    EXPECT_EQ(sum ? value + 10 : value, row.get(total)) << row.about.name;
  }
  for (const VfHistogram& histogram : VfHistograms()) {
    EXPECT_EQ(3u, histogram.get(total).count());
    EXPECT_EQ(6'000u, histogram.get(total).sum_ns());
  }
  VfStats worse;
  worse.account.worst_overrun_ns = 5'000;
  AddUsage(total, worse);
  EXPECT_EQ(5'000u, total.account.worst_overrun_ns);
}

TEST(HistogramTextTest, IsTheSumTheMostAndTheBucketsThatAreNotEmpty) {
  LatencyHistogram histogram;
  EXPECT_EQ("0 0", ToText(histogram));
  for (const uint64_t ns : {0u, 300u, 300u}) histogram.Add(ns);
  histogram.Add(9'000'000'000);
  EXPECT_EQ("9000000600 9000000000 0:1 1:2 96:1", ToText(histogram));
}

TEST(HistogramTextTest, OnlyWhatItWritesIsRead) {
  const auto all = HistogramFromText("12 9 0:1 3:2 96:4");
  ASSERT_TRUE(all);
  EXPECT_EQ(12u, all->sum_ns());
  EXPECT_EQ(9u, all->max_ns());
  EXPECT_EQ(1u, all->buckets()[0]);
  EXPECT_EQ(2u, all->buckets()[3]);
  EXPECT_EQ(4u, all->buckets()[96]);
  EXPECT_EQ(7u, all->count());
  const auto none = HistogramFromText("12 9");
  ASSERT_TRUE(none);
  EXPECT_EQ(0u, none->count());
  for (const char* bad : {"", "x", "1", "1,2", "1 x", "1 2 3", "1 2 97:1", "1 2 3;4", "1 2 3:x", "1 2 3:4,5:6",
                          "1 2 -1:1", "1 2 3:4:5", "99999999999999999999 1"})
    EXPECT_FALSE(HistogramFromText(bad)) << bad;
}

}  // namespace
}  // namespace vgpud::daemon
