// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/prometheus_text.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

TEST(PrometheusTextTest, FamiliesHaveHelpAndType) {
  PrometheusText text;
  text.Family("x_seconds_total", "counter", "What it is: a \\ and\nmore.");
  text.Seconds({{"vf", "a"}}, 12'345'678'901);
  text.Sample({}, uint64_t{7});
  text.Sample({}, -0.25);
  EXPECT_EQ(
      "# HELP x_seconds_total What it is: a \\\\ and\\nmore.\n"
      "# TYPE x_seconds_total counter\n"
      "x_seconds_total{vf=\"a\"} 12.345678901\n"
      "x_seconds_total 7\n"
      "x_seconds_total -0.25\n",
      text.text());
}

TEST(PrometheusTextTest, LabelValuesAreEscaped) {
  PrometheusText text;
  text.Family("x", "gauge", "h");
  text.Sample({{"vf", "a\"b\\c\nd"}, {"window", "1s"}}, uint64_t{1});
  EXPECT_NE(std::string::npos, text.text().find("x{vf=\"a\\\"b\\\\c\\nd\",window=\"1s\"} 1\n")) << text.text();
}

TEST(PrometheusTextTest, BucketsAreCumulativeAndEndAtInfinity) {
  LatencyHistogram histogram;
  histogram.Add(100);
  histogram.Add(1'500);
  histogram.Add(1'600);
  histogram.Add(3'000'000'000);
  PrometheusText text;
  text.Family("x_seconds", "histogram", "h");
  text.Histogram({{"vf", "a"}}, histogram);
  for (const char* line :
       {"x_seconds_bucket{vf=\"a\",le=\"1.024e-06\"} 1\n", "x_seconds_bucket{vf=\"a\",le=\"2.048e-06\"} 3\n",
        "x_seconds_bucket{vf=\"a\",le=\"1.073741824\"} 3\n", "x_seconds_bucket{vf=\"a\",le=\"+Inf\"} 4\n",
        "x_seconds_sum{vf=\"a\"} 3.000003200\n", "x_seconds_count{vf=\"a\"} 4\n"})
    EXPECT_NE(std::string::npos, text.text().find(line)) << line << text.text();
}

}  // namespace
}  // namespace vgpud::daemon
