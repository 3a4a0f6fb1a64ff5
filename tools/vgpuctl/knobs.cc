// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/knobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/text/numbers.h"
#include "base/units.h"

namespace vgpud::tools {
namespace {

constexpr double kMillionths = 1e6;  // of the GPU, as the ranges of parts have them
constexpr std::string_view kDefaultWords[] = {"auto", "none", "off", "default"};

auto Bad(std::string_view text, std::string_view what, std::string_view example) {
  return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not {} (write it like {})", text, what, example));
}

Result<CtlJson> ParseWhole(std::string_view text, bool percent) {
  const std::string_view digits = percent && text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  const auto number = ParseInteger<int64_t>(digits);
  if (!number) return Bad(text, "a number", percent ? "5%" : "300");
  return CtlJson(*number);
}

Result<CtlJson> ParsePart(std::string_view text) {
  const auto part = ParseFraction(text);
  if (!part) return Bad(text, "a part of the GPU", "25% or 0.25");
  if (*part > 1 && *part <= 100 && !text.ends_with('%'))
    return Fail(std::errc::invalid_argument, fmt::format("{0} is more than the whole GPU: did you mean {0}%?", text));
  return CtlJson(*part);
}

Result<CtlJson> ParseSwitch(std::string_view text) {
  constexpr std::string_view kOn[] = {"yes", "on", "true", "1"}, kOff[] = {"no", "off", "false", "0"};
  if (std::find(std::begin(kOn), std::end(kOn), text) != std::end(kOn)) return CtlJson(1);
  if (std::find(std::begin(kOff), std::end(kOff), text) != std::end(kOff)) return CtlJson(0);
  return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is neither yes nor no", text));
}
// Whatever its range.
Result<CtlJson> ParseForm(const control::KnobInfo& knob, std::string_view text) {
  if (knob.is_switch()) return ParseSwitch(text);
  if (knob.unit == control::Unit::kPart) return ParsePart(text);
  if (knob.unit == control::Unit::kMicroseconds) return CtlJson(static_cast<int64_t>(TRY(ParseMicroseconds(text))));
  return ParseWhole(text, knob.unit == control::Unit::kPercent);
}

}  // namespace

Result<CtlJson> ParseKnob(const control::KnobInfo& knob, std::string_view text) {
  if (std::find(std::begin(kDefaultWords), std::end(kDefaultWords), text) != std::end(kDefaultWords) &&
      !(knob.is_switch() && text == "off"))
    return CtlJson(nullptr);
  const CtlJson value = TRY(ParseForm(knob, text));
  const double amount = value.get<double>() * (knob.unit == control::Unit::kPart ? kMillionths : 1);
  const bool fits = amount >= static_cast<double>(knob.least) && amount <= static_cast<double>(knob.most);
  if (fits || (amount == 0 && knob.zero_too)) return value;
  return Fail(std::errc::invalid_argument, fmt::format("{} is out of range: allowed is {}", text, RangeText(knob)));
}

std::string RangeText(const control::KnobInfo& knob) {
  if (knob.is_switch()) return "yes or no";
  const auto amount = [&knob](uint64_t value) {
    if (knob.unit == control::Unit::kMicroseconds) return FormatMicroseconds(value);
    if (knob.unit == control::Unit::kPart) return FormatPart(static_cast<double>(value) / kMillionths);
    return fmt::format("{}{}", value, knob.unit == control::Unit::kPercent ? "%" : "");
  };
  return fmt::format("{}{} to {}", knob.zero_too ? "0 or " : "", amount(knob.least), amount(knob.most));
}

Result<GroupInput> ParseGroupKnob(const control::KnobInfo& knob, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return Bad(text, "GROUP=WEIGHT", "3=200");
  const CtlJson value = TRY(ParseKnob(knob, text.substr(equals + 1)));
  return GroupInput{std::string(text.substr(0, equals)), value};
}

Result<CtlJson> ParseMemory(const MemoryOption& memory, std::string_view text) {
  const auto bytes = ParseBytes(text);
  if (!bytes)
    return Fail(
        std::errc::invalid_argument,
        bytes.error().context + (text.ends_with('%') ? "; --profile 1/4 gives a part of the GPU's memory" : ""));
  if (*bytes >= memory.least && *bytes <= memory.most) return CtlJson(*bytes);
  return Fail(std::errc::invalid_argument, fmt::format("{} is out of range: allowed is {} to {}", text,
                                                       FormatBytes(memory.least), FormatBytes(memory.most)));
}

namespace {

// What can be set of a VF by that option, and how its value is written.
struct Settable {
  std::string field;
  std::function<Result<CtlJson>(std::string_view)> parse;
};
std::optional<Settable> SetOf(std::string_view option) {
  for (const auto& knob : control::Knobs())
    if (knob.per_vf && knob.option == option)
      return Settable{knob.field, [&knob](std::string_view text) { return ParseKnob(knob, text); }};
  for (const auto& memory : kMemoryOptions)
    if (memory.option == option)
      return Settable{memory.field, [&memory](std::string_view text) { return ParseMemory(memory, text); }};
  return std::nullopt;
}

}  // namespace

Result<VfInput> ParseVfInput(std::string_view text) {
  const auto bad = [&] { return Bad(text, "NAME:OPTION=VALUE,...", "guest-a:weight=300,limit=50%"); };
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos) return bad();
  VfInput input{std::string(text.substr(0, colon)), {}};
  for (std::string_view rest = text.substr(colon + 1);;) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return bad();
    const std::string_view option = part.substr(0, equals);
    const auto set = SetOf(option);
    if (!set)
      return Fail(std::errc::invalid_argument,
                  fmt::format("{}: there is no option \"{}\" of a VF (see: vgpuctl set --help)", input.name, option));
    if (std::any_of(input.fields.begin(), input.fields.end(), [&](const auto& f) { return f.first == set->field; }))
      return Fail(std::errc::invalid_argument, fmt::format("{}: {} is given twice", input.name, option));
    auto value = set->parse(part.substr(equals + 1));
    if (!value)
      return Fail(std::errc::invalid_argument, fmt::format("{}: {} {}", input.name, option, value.error().context));
    input.fields.emplace_back(set->field, *value);
    if (comma == std::string_view::npos) return input;
    rest = rest.substr(comma + 1);
  }
}

std::string FormatPart(double part) { return fmt::format("{:.4g}%", part * 100); }

}  // namespace vgpud::tools
