// SPDX-License-Identifier: Apache-2.0
// Periods: how they are written, and when they hold.
#include "vgpud/calendar/calendar.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

constexpr int kSunday = 0, kMonday = 1, kFriday = 5, kSaturday = 6;

std::tm At(int day, int hour, int minute) {
  std::tm local{};
  local.tm_wday = day;
  local.tm_hour = hour;
  local.tm_min = minute;
  return local;
}
Calendar Of(std::initializer_list<const char*> settings) {
  Calendar calendar;
  for (const char* setting : settings) {
    const auto set = SetInCalendar(&calendar, setting);
    EXPECT_TRUE(set) << setting << ": " << set.error().context;
  }
  return calendar;
}
std::string WhyNotSet(std::string_view setting) {
  Calendar some;
  const auto set = SetInCalendar(&some, setting);
  return set ? "" : set.error().context;
}

TEST(CalendarTest, APeriodWithinADay) {
  const Period day = Of({"day.from=08:00", "day.to=18:30", "day.days=mon-fri"})[0];
  EXPECT_FALSE(Holds(day, At(kMonday, 7, 59)));
  EXPECT_TRUE(Holds(day, At(kMonday, 8, 0)));
  EXPECT_TRUE(Holds(day, At(kFriday, 18, 29)));
  EXPECT_FALSE(Holds(day, At(kFriday, 18, 30)));
  EXPECT_FALSE(Holds(day, At(kSaturday, 12, 0)));
  EXPECT_EQ("mon-fri 08:00 to 18:30", day.When());
}

TEST(CalendarTest, APeriodOverMidnightIsOfTheDayOnWhichItBegins) {
  const Period night = Of({"night.from=22:00", "night.to=06:00", "night.days=fri"})[0];
  EXPECT_FALSE(Holds(night, At(kFriday, 5, 0)));
  EXPECT_TRUE(Holds(night, At(kFriday, 22, 0)));
  EXPECT_TRUE(Holds(night, At(kSaturday, 5, 59)));
  EXPECT_FALSE(Holds(night, At(kSaturday, 6, 0)));
  EXPECT_FALSE(Holds(night, At(kSaturday, 22, 0)));
  const Period sunday = Of({"s.from=23:00", "s.to=01:00", "s.days=sat"})[0];
  EXPECT_TRUE(Holds(sunday, At(kSunday, 0, 30))) << "the week goes round";
}

TEST(CalendarTest, TheSameTimeTwiceIsAWholeDay) {
  const Period sunday = Of({"s.days=sun"})[0];
  EXPECT_TRUE(Holds(sunday, At(kSunday, 0, 0)));
  EXPECT_TRUE(Holds(sunday, At(kSunday, 23, 59)));
  EXPECT_FALSE(Holds(sunday, At(kMonday, 0, 0)));
  EXPECT_FALSE(Holds(sunday, At(kSaturday, 23, 59)));
  const Period from_noon = Of({"n.days=sun", "n.from=12:00", "n.to=12:00"})[0];
  EXPECT_FALSE(Holds(from_noon, At(kSunday, 11, 59)));
  EXPECT_TRUE(Holds(from_noon, At(kSunday, 12, 0)));
  EXPECT_TRUE(Holds(from_noon, At(kMonday, 11, 59)));
  EXPECT_FALSE(Holds(from_noon, At(kMonday, 12, 0)));
}

// Against a plain player: every minute of a week, for random periods.
TEST(CalendarTest, EveryMinuteOfAWeekIsAsAPlayerHasIt) {
  constexpr int kDay = 24 * 60, kWeek = 7 * kDay;
  uint32_t random = 20261125;
  const auto next = [&](uint32_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  for (int round = 0; round < 50; ++round) {
    const Period period{.name = "p",
                        .days = static_cast<uint8_t>(next(128)),
                        .from = static_cast<int>(next(kDay)),
                        .to = static_cast<int>(next(8) == 0 ? 0 : next(kDay)),
                        .settings = {}};
    std::vector<bool> holds(kWeek);
    for (int day = 0; day < 7; ++day) {
      if ((period.days >> day & 1) == 0) continue;
      const int begin = day * kDay + period.from;
      const int end = day * kDay + period.to + (period.to <= period.from ? kDay : 0);
      for (int minute = begin; minute < end; ++minute) holds[static_cast<size_t>(minute % kWeek)] = true;
    }
    for (int minute = 0; minute < kWeek; ++minute)
      ASSERT_EQ(holds[static_cast<size_t>(minute)], Holds(period, At(minute / kDay, minute % kDay / 60, minute % 60)))
          << period.When() << " at minute " << minute;
  }
}

TEST(CalendarTest, OfTwoThatHoldTheLaterOneCounts) {
  const Calendar calendar = Of({"a.vf.x.weight=200", "a.vf.y.weight=200", "b.vf.x.weight=300", "c.from=01:00",
                                "c.to=02:00", "c.vf.x.weight=900"});
  const SettingValues wanted = WantedAt(calendar, At(kMonday, 12, 0));
  EXPECT_EQ("300", wanted.at({"x", "", "weight"}));
  EXPECT_EQ("200", wanted.at({"y", "", "weight"}));
  EXPECT_EQ("900", WantedAt(calendar, At(kMonday, 1, 30)).at({"x", "", "weight"}));
}

TEST(CalendarTest, SettingsAreCheckedWhenTheyAreRead) {
  const Period period = Of({"n.vf.x.guarantee=25%", "n.vf.x.paused=true", "n.gpu.policy=reserve",
                            "n.gpu.gpu1.base_slice_us=4000", "n.gpu.idle=hold"})[0];
  EXPECT_EQ("250000", period.settings.at({"x", "", "guarantee"}));
  EXPECT_EQ("reserve", period.settings.at({"", "", "policy"}));
  EXPECT_EQ("4000", period.settings.at({"", "gpu1", "base_slice_us"}));
  EXPECT_NE("", WhyNotSet("n.vf.x.weight=0"));
  EXPECT_NE("", WhyNotSet("n.vf.x.weight=many"));
  EXPECT_NE(std::string::npos, WhyNotSet("n.vf.x.wieght=3").find("did you mean weight?"));
  EXPECT_NE(std::string::npos, WhyNotSet("n.gpu.polcy=strict").find("did you mean policy?"));
  EXPECT_NE("", WhyNotSet("n.gpu.policy=strictest"));
  EXPECT_NE("", WhyNotSet("n.gpu.idle=perhaps"));
  EXPECT_NE("", WhyNotSet("n.gpu.group_weight=3"));
  EXPECT_NE("", WhyNotSet("n.vf.x.paused=1"));
  EXPECT_NE("", WhyNotSet("n.vf.X.weight=3"));
  EXPECT_NE("", WhyNotSet("n.vf.weight=3"));
  EXPECT_NE("", WhyNotSet("n.fv.x.weight=3"));
}

TEST(CalendarTest, TimesAndDaysAreChecked) {
  for (const char* wrong : {"n.from=24:00", "n.from=6:00", "n.from=06:60", "n.from=-1:00", "n.from=06-00", "n.from=",
                            "n.days=", "n.days=mon,", "n.days=monday", "n.days=mon-", "n.days=-fri", "n.days=mon fri"})
    EXPECT_NE("", WhyNotSet(wrong)) << wrong;
  EXPECT_EQ("mon,wed,sat,sun 00:00 to 00:00", Of({"n.days=sat-mon,wed"})[0].When());
  EXPECT_EQ("daily 00:00 to 00:00", Of({"n.days=tue-mon"})[0].When());
}

}  // namespace
}  // namespace vgpud::daemon
