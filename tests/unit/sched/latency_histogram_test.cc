// SPDX-License-Identifier: Apache-2.0
#include "sched/latency_histogram.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vgpud
