// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/day.h"

#include <fmt/core.h>

#include <chrono>
#include <ctime>

namespace vgpud::daemon {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr int64_t kDaySeconds = 24 * 60 * 60;
constexpr int kYearsFrom = 1900;  // struct tm

year_month_day DayIn(const tm& parts) {
  return std::chrono::year{parts.tm_year + kYearsFrom} / (parts.tm_mon + 1) / parts.tm_mday;
}

const char* Read(const std::string& day, tm* parts) { return ::strptime(day.c_str(), "%Y-%m-%d", parts); }

int64_t NumberOf(const std::string& day) {
  tm parts{};
  (void)Read(day, &parts);
  return sys_days{DayIn(parts)}.time_since_epoch().count();
}

}  // namespace

// gmtime_r and strftime would read the zone of the host, which the calendar may set in another thread meanwhile.
std::string DayOf(int64_t unix_seconds) {
  const year_month_day day{std::chrono::floor<days>(std::chrono::sys_seconds{std::chrono::seconds{unix_seconds}})};
  return fmt::format("{:04}-{:02}-{:02}", int{day.year()}, unsigned{day.month()}, unsigned{day.day()});
}

int64_t NextDay(int64_t unix_seconds) { return (unix_seconds / kDaySeconds + 1) * kDaySeconds; }

std::string DayAfter(const std::string& day, int64_t days) { return DayOf((NumberOf(day) + days) * kDaySeconds); }

int64_t DaysOf(const std::string& from, const std::string& to) {
  return to < from ? 0 : NumberOf(to) - NumberOf(from) + 1;
}

Result<std::string> ParseDay(std::string_view text) {
  const std::string day(text);
  tm parts{};
  const char* end = Read(day, &parts);
  // A day that the calendar does not have comes back as another one, and 2026-1-2 as it is written here.
  if (end == nullptr || *end != '\0' || DayOf(NumberOf(day) * kDaySeconds) != day)
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not a day (write it like 2026-11-20, UTC)", day));
  return day;
}

}  // namespace vgpud::daemon
