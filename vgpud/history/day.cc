// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/day.h"

#include <fmt/core.h>

#include <array>
#include <ctime>

namespace vgpud::daemon {
namespace {

constexpr int64_t kDaySeconds = 24 * 60 * 60;
constexpr const char* kForm = "%Y-%m-%d";

int64_t NumberOf(const std::string& day) {
  tm parts{};
  ::strptime(day.c_str(), kForm, &parts);
  return static_cast<int64_t>(::timegm(&parts)) / kDaySeconds;
}

}  // namespace

std::string DayOf(int64_t unix_seconds) {
  const time_t time = unix_seconds;
  tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return std::string(text.data(), ::strftime(text.data(), text.size(), kForm, &parts));
}

int64_t NextDay(int64_t unix_seconds) { return (unix_seconds / kDaySeconds + 1) * kDaySeconds; }

std::string DayAfter(const std::string& day, int64_t days) { return DayOf((NumberOf(day) + days) * kDaySeconds); }

int64_t DaysOf(const std::string& from, const std::string& to) {
  return to < from ? 0 : NumberOf(to) - NumberOf(from) + 1;
}

Result<std::string> ParseDay(std::string_view text) {
  const std::string day(text);
  tm parts{};
  const char* end = ::strptime(day.c_str(), kForm, &parts);
  // Days that the calendar does not have come back as others.
  if (end == nullptr || *end != '\0' || DayOf(::timegm(&parts)) != day)
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not a day (write it like 2026-11-20, UTC)", day));
  return day;
}

}  // namespace vgpud::daemon
