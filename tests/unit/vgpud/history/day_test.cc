// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/day.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

TEST(DayArithmeticTest, TheCalendarsOwn) {
  const struct {
    const char* day;
    int64_t later;
    const char* is;
  } kDays[] = {{"2026-11-20", 0, "2026-11-20"},  {"2026-11-20", 1, "2026-11-21"},    {"2026-11-30", 1, "2026-12-01"},
               {"2026-12-31", 1, "2027-01-01"},  {"2024-02-28", 1, "2024-02-29"},    {"2026-02-28", 1, "2026-03-01"},
               {"2026-03-01", -1, "2026-02-28"}, {"2026-11-20", -399, "2025-10-17"}, {"1970-01-02", -1, "1970-01-01"}};
  for (const auto& [day, later, is] : kDays) EXPECT_EQ(is, DayAfter(day, later)) << day << later;
  EXPECT_EQ("2026-11-21", DayAfter("2026-11-20"));
}

TEST(DayArithmeticTest, BothEndsCount) {
  EXPECT_EQ(2, DaysOf("2026-12-31", "2027-01-01"));
  EXPECT_EQ(400, DaysOf("2024-01-01", "2025-02-03"));
  EXPECT_EQ(0, DaysOf("2027-01-01", "2026-12-31"));
}

TEST(DayArithmeticTest, MidnightBeginsTheNextDay) {
  EXPECT_EQ(86'400, NextDay(0));
  EXPECT_EQ(86'400, NextDay(86'399));
  EXPECT_EQ(172'800, NextDay(86'400));
  EXPECT_EQ("1970-01-01", DayOf(86'399));
  EXPECT_EQ("1970-01-02", DayOf(86'400));
}

}  // namespace
}  // namespace vgpud::daemon
