// SPDX-License-Identifier: Apache-2.0
#include "base/event_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace vgpud {

Result<void> ParseEventBudget(std::string_view text, EventBudgets& budgets) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view kind = text.substr(0, equals);
  const std::string_view number = text.substr(std::min(equals + 1, text.size()));
  const auto name = std::find(std::begin(kEventNames), std::end(kEventNames), kind);
  if (name == std::end(kEventNames)) {
    std::string known;
    for (const char* one : kEventNames) known += fmt::format("{}{}", known.empty() ? "" : ", ", one);
    return Fail(std::errc::invalid_argument,
                fmt::format("event budget \"{}\": \"{}\" is no kind of event, there are {}", text, kind, known));
  }
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc{} || end != number.data() + number.size() || value > kMaxEventsPerSecond)
    return Fail(std::errc::invalid_argument,
                fmt::format("event budget \"{}\": 1 to {} events per second are possible, or 0 for no limit", text,
                            kMaxEventsPerSecond));
  budgets[static_cast<size_t>(name - std::begin(kEventNames))] = value;
  return {};
}

}  // namespace vgpud
