// SPDX-License-Identifier: Apache-2.0
#include "sched/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace vgpud {
namespace {

TEST(LatencyHistogramTest, EveryDurationIsBelowItsEdgeAndNotBelowTheOneBefore) {
  for (const uint64_t ns :
       {0ull, 255ull, 256ull, 319ull, 320ull, 1000ull, 50'000ull, 123'456'789ull, 4'294'967'295ull}) {
    LatencyHistogram histogram;
    histogram.Add(ns);
    for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
      if (histogram.buckets()[i] == 0) continue;
      EXPECT_LT(ns, LatencyHistogram::UpperNs(i));
      if (i > 0) {
        EXPECT_GE(ns, LatencyHistogram::UpperNs(i - 1));
      }
    }
  }
}

TEST(LatencyHistogramTest, PercentilesAreAtMostAQuarterTooHigh) {
  LatencyHistogram histogram;
  for (uint64_t us = 1; us <= 1000; ++us) histogram.Add(us * 1000);
  for (const double percent : {50.0, 90.0, 99.0}) {
    EXPECT_GE(histogram.Percentile(percent), static_cast<uint64_t>(percent * 10'000));
    EXPECT_LE(histogram.Percentile(percent), static_cast<uint64_t>(percent * 12'500));
  }
  EXPECT_EQ(1'000'000u, histogram.Percentile(100));
  EXPECT_EQ(1'000'000u, histogram.max_ns());
}

TEST(LatencyHistogramTest, EmptyAndBeyondTheLastBucket) {
  LatencyHistogram histogram;
  EXPECT_EQ(0u, histogram.Percentile(99));
  histogram.Add(UINT64_MAX);
  EXPECT_EQ(UINT64_MAX, histogram.Percentile(50));
  EXPECT_EQ(1u, histogram.count());
}

// Four to each power of two from 256 ns to 4 s, and one below.
TEST(LatencyHistogramTest, EveryEdgeIsWhereItIsSaidToBe) {
  std::vector<uint64_t> edges{256};
  for (uint64_t power = 256; power < uint64_t{1} << 32; power *= 2)
    for (uint64_t quarter = 5; quarter <= 8; ++quarter) edges.push_back(power / 4 * quarter);
  ASSERT_EQ(97u, edges.size());
  ASSERT_EQ(97u, LatencyHistogram::kBuckets);
  for (size_t i = 0; i < edges.size(); ++i) {
    EXPECT_EQ(edges[i], LatencyHistogram::UpperNs(i));
    EXPECT_EQ(i, LatencyHistogram::Bucket(edges[i] - 1));
    EXPECT_EQ(std::min<size_t>(i + 1, 96), LatencyHistogram::Bucket(edges[i]));
  }
  EXPECT_EQ(0u, LatencyHistogram::Bucket(0));
}

TEST(LatencyHistogramTest, TheShortestCountToo) {
  LatencyHistogram histogram;
  EXPECT_EQ(0u, histogram.max_ns());
  EXPECT_EQ(0u, histogram.sum_ns());
  for (const uint64_t ns : {100, 100, 300}) histogram.Add(ns);
  EXPECT_EQ(256u, histogram.Percentile(50));
}

TEST(LatencyHistogramTest, PercentilesAreEdgesAndTheLastIsTheLongest) {
  LatencyHistogram histogram;
  for (const uint64_t ns : {300, 700, 700, 4'000}) histogram.Add(ns);
  EXPECT_EQ(320u, histogram.Percentile(0));
  EXPECT_EQ(320u, histogram.Percentile(25));
  EXPECT_EQ(768u, histogram.Percentile(25.1));
  EXPECT_EQ(768u, histogram.Percentile(75));
  EXPECT_EQ(4'000u, histogram.Percentile(75.1));
  EXPECT_EQ(4'000u, histogram.Percentile(100));
}

// The last bucket but one ends at 7/8 of 4 s, the last one has no end.
TEST(LatencyHistogramTest, OnlyTheLastBucketHasNoEdge) {
  constexpr uint64_t kLastEdge = (uint64_t{1} << 32) / 8 * 7;
  for (const bool beyond : {false, true}) {
    LatencyHistogram histogram;
    histogram.Add(beyond ? kLastEdge : kLastEdge - 1);
    histogram.Add(UINT64_MAX / 4);
    EXPECT_EQ(beyond ? UINT64_MAX / 4 : kLastEdge, histogram.Percentile(50)) << beyond;
  }
}

TEST(LatencyHistogramTest, IsTakenDownMergedAndMadeAgain) {
  LatencyHistogram a, b;
  for (const uint64_t ns : {100, 300, 301}) a.Add(ns);
  b.Add(5'000);
  a.Merge(b);
  a.Merge(LatencyHistogram{});
  EXPECT_EQ(4u, a.count());
  EXPECT_EQ(5'701u, a.sum_ns());
  EXPECT_EQ(5'000u, a.max_ns());
  EXPECT_EQ(2u, a.buckets()[LatencyHistogram::Bucket(300)]);
  EXPECT_EQ(1u, a.buckets()[0]);
  EXPECT_EQ(1u, a.buckets()[LatencyHistogram::Bucket(5'000)]);
  b.Merge(a);
  EXPECT_EQ(5'000u, b.max_ns());
  EXPECT_EQ(1u, b.buckets()[0]);
  const auto again = LatencyHistogram::From(a.buckets(), a.sum_ns(), a.max_ns());
  EXPECT_EQ(4u, again.count());
  EXPECT_EQ(5'701u, again.sum_ns());
  EXPECT_EQ(5'000u, again.max_ns());
  EXPECT_EQ(a.buckets(), again.buckets());
}

}  // namespace
}  // namespace vgpud
