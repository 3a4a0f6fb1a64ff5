#include "tools/vgpuctl/knobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tools/vgpuctl/units.h"

namespace vgpud {
namespace {

constexpr std::string_view kDefaultWords[] = {"auto", "none", "off", "default"};

auto Bad(std::string_view text, std::string_view what, std::string_view example) {
  return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not {} (write it like {})", text, what, example));
}

Result<KnobInput> ParseWhole(std::string_view text, bool percent) {
  const std::string_view digits = percent && text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return Bad(text, "a number", percent ? "5%" : "300");
  return number;
}

Result<KnobInput> ParsePart(std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(number))
    return Bad(text, "a part of the GPU", "25% or 0.25");
  return percent ? number / 100 : number;
}

}  // namespace

Result<KnobInput> ParseKnob(const control::KnobInfo& knob, std::string_view text) {
  if (std::find(std::begin(kDefaultWords), std::end(kDefaultWords), text) != std::end(kDefaultWords))
    return std::monostate{};
  if (knob.unit == control::Unit::kPart) return ParsePart(text);
  if (knob.unit == control::Unit::kMicroseconds) return static_cast<int64_t>(TRY(ParseMicroseconds(text)));
  return ParseWhole(text, knob.unit == control::Unit::kPercent);
}

Result<GroupInput> ParseGroupKnob(const control::KnobInfo& knob, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return Bad(text, "GROUP=WEIGHT", "3=200");
  return GroupInput{std::string(text.substr(0, equals)), TRY(ParseKnob(knob, text.substr(equals + 1)))};
}

std::string FormatPart(double part) { return fmt::format("{:.4g}%", part * 100); }

}  // namespace vgpud
