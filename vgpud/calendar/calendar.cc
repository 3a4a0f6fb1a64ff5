// SPDX-License-Identifier: Apache-2.0
#include "vgpud/calendar/calendar.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "sched/knobs.h"
#include "vgpud/model/api.h"
#include "vgpud/model/named_setting.h"
#include "vgpud/model/nearest.h"

namespace vgpud::daemon {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr uint8_t kDaily = 0x7f;
constexpr int kMinutesPerHour = 60;
constexpr int kMinutesPerDay = 24 * kMinutesPerHour;

Result<int> ParseMinute(std::string_view key, std::string_view text) {
  const auto number = [&](size_t at) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 2, value);
    return error == std::errc{} && end == text.data() + at + 2 && value >= 0 ? std::optional(value) : std::nullopt;
  };
  if (text.size() == 5 && text[2] == ':')
    if (const auto hours = number(0), minutes = number(3);
        hours && minutes && *hours < 24 && *minutes < kMinutesPerHour)
      return *hours * kMinutesPerHour + *minutes;
  return Fail(std::errc::invalid_argument,
              fmt::format("{} \"{}\" is no time of the day: write it like 06:00 or 22:30", key, text));
}

Result<size_t> ParseDayName(std::string_view text) {
  for (size_t day = 0; day < kDays.size(); ++day)
    if (kDays[day] == text) return day;
  return Fail(std::errc::invalid_argument,
              fmt::format("days: \"{}\" is no day: write days like mon-fri, sat,sun or daily", text));
}

Result<uint8_t> ParseDays(std::string_view text) {
  if (text == "daily") return kDaily;
  uint8_t days = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, comma - at);
    const size_t dash = part.find('-');
    const size_t first = TRY(ParseDayName(part.substr(0, dash)));
    const size_t last = dash == std::string_view::npos ? first : TRY(ParseDayName(part.substr(dash + 1)));
    for (size_t day = first;; day = (day + 1) % kDays.size()) {
      days = static_cast<uint8_t>(days | 1U << day);
      if (day == last) break;
    }
    at = comma + 1;
  }
  return days;
}

std::string DaysText(uint8_t days) {
  if (days == kDaily) return "daily";
  std::string text;
  for (size_t i = 1; i <= kDays.size(); ++i)  // a week begins on Monday
    if (days >> (i % kDays.size()) & 1) text += fmt::format("{}{}", text.empty() ? "" : ",", kDays[i % kDays.size()]);
  return text == "mon,tue,wed,thu,fri" ? "mon-fri" : text;
}

Result<std::string> ParseChoice(std::string_view key, std::string_view text, std::vector<std::string> choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string(text);
  return Fail(std::errc::invalid_argument,
              fmt::format("{} \"{}\" is unknown: {}", key, text, control::DidYouMean(text, choices)));
}

Result<std::string> ParseSetting(std::string_view field, std::string_view text, bool of_vf) {
  if (of_vf && field == "paused") return ParseChoice(field, text, {"true", "false"});
  if (!of_vf && field == kIdleField) return ParseChoice(field, text, {"yield", "hold"});
  if (!of_vf && field == kPolicyField) return std::string(TRY(FindPolicy(text))->name);
  if (const KnobRow* row = FindKnobRow(field, of_vf)) return std::to_string(TRY(ParseKnobText(*row, text)));
  const auto keys = of_vf ? PeriodVfKeys() : PeriodGpuKeys();
  return Fail(std::errc::invalid_argument, fmt::format("{} has no setting \"{}\": {}", of_vf ? "a VF" : "a GPU", field,
                                                       control::DidYouMean(field, keys)));
}

// "vf.training.weight", "gpu.policy", "gpu.GPU.policy"
Result<SettingKey> ParseKey(std::string_view key) {
  const size_t first = key.find('.'), last = key.rfind('.');
  const std::string_view kind = key.substr(0, first);
  if (first == std::string_view::npos || (kind != "vf" && kind != "gpu") || (kind == "vf" && first == last))
    return Fail(std::errc::invalid_argument,
                fmt::format("a period has no key \"{}\": {}; settings are vf.NAME.KEY, gpu.KEY and gpu.NAME.KEY", key,
                            control::DidYouMean(key, PeriodKeys())));
  const std::string name(first == last ? std::string_view() : key.substr(first + 1, last - first - 1));
  if (first != last && !control::IsValidName(name))
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is no name of a {}", name, kind));
  return kind == "vf" ? SettingKey{name, {}, std::string(key.substr(last + 1))}
                      : SettingKey{{}, name, std::string(key.substr(last + 1))};
}

std::string TimeText(int minute) {
  return fmt::format("{:02}:{:02}", minute / kMinutesPerHour, minute % kMinutesPerHour);
}

}  // namespace

std::string SettingKey::Text() const {
  if (!vf.empty()) return fmt::format("vf {} {}", vf, field);
  return gpu.empty() ? fmt::format("gpu {}", field) : fmt::format("gpu {} {}", gpu, field);
}

std::string Period::When() const { return fmt::format("{} {} to {}", DaysText(days), TimeText(from), TimeText(to)); }

std::vector<std::string> PeriodKeys() { return {"days", "from", "to"}; }

std::vector<std::string> PeriodVfKeys() {
  std::vector<std::string> keys = {"paused"};
  for (const KnobRow& row : Knobs())
    if (row.per_vf) keys.emplace_back(row.name);
  return keys;
}

std::vector<std::string> PeriodGpuKeys() {
  std::vector<std::string> keys = {std::string(kPolicyField), std::string(kIdleField)};
  for (const KnobRow& row : Knobs())
    if (!row.per_vf && row.knob != Knob::kGroupWeight) keys.emplace_back(row.name);
  return keys;
}

Result<void> SetInCalendar(Calendar* calendar, std::string_view text) {
  const NamedSetting setting = TRY(ParseNamedSetting("period", text, "night.from=22:00"));
  auto found =
      std::find_if(calendar->begin(), calendar->end(), [&](const Period& each) { return each.name == setting.name; });
  Period changed = found != calendar->end() ? *found : Period{.name = setting.name, .settings = {}};
  if (setting.key == "days") {
    changed.days = TRY(ParseDays(setting.value));
  } else if (setting.key == "from" || setting.key == "to") {
    (setting.key == "from" ? changed.from : changed.to) = TRY(ParseMinute(setting.key, setting.value));
  } else {
    const SettingKey key = TRY(ParseKey(setting.key));
    changed.settings[key] = TRY(ParseSetting(key.field, setting.value, !key.vf.empty()));
  }
  if (found != calendar->end())
    *found = std::move(changed);
  else
    calendar->push_back(std::move(changed));
  return {};
}

bool Holds(const Period& period, const std::tm& local) {
  const int minute = local.tm_hour * kMinutesPerHour + local.tm_min;
  const auto begins_on = [&](int day) { return (period.days >> ((day + 7) % 7) & 1) != 0; };
  const int length = (period.to - period.from + kMinutesPerDay - 1) % kMinutesPerDay + 1;
  const auto within = [&](int since) { return since >= 0 && since < length; };
  return (begins_on(local.tm_wday) && within(minute - period.from)) ||
         (begins_on(local.tm_wday - 1) && within(minute + kMinutesPerDay - period.from));
}

SettingValues WantedAt(const Calendar& calendar, const std::tm& local) {
  SettingValues wanted;
  for (const Period& period : calendar)
    if (Holds(period, local))
      for (const auto& [key, value] : period.settings) wanted[key] = value;
  return wanted;
}

}  // namespace vgpud::daemon
