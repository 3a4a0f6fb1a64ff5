// SPDX-License-Identifier: Apache-2.0
// Days of the history, in UTC: "2026-11-20".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud::daemon {

// The day of a moment, in seconds since 1970.
std::string DayOf(int64_t unix_seconds);
// When the day after it begins.
int64_t NextDay(int64_t unix_seconds);
// The day `days` after (or before, if negative) `day`, which is from ParseDay or DayOf.
std::string DayAfter(const std::string& day, int64_t days = 1);
// Days from..to, both included; 0 if `to` is before `from`. Both from ParseDay.
int64_t DaysOf(const std::string& from, const std::string& to);
// `text` if it is a day of the calendar in this form; the error says what it should look like.
[[nodiscard]] Result<std::string> ParseDay(std::string_view text);

}  // namespace vgpud::daemon
