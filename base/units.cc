// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

namespace vgpud {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};
// Largest first.
constexpr Unit kByteUnits[] = {
    {"TiB", uint64_t{1} << 40}, {"GiB", 1u << 30}, {"MiB", 1u << 20}, {"KiB", 1u << 10}, {"B", 1}};
constexpr Unit kTimeUnits[] = {{"s", 1'000'000}, {"ms", 1'000}, {"us", 1}};
// These are read, and never written.
constexpr Unit kReadTimeUnits[] = {{"h", 3'600'000'000}, {"min", 60'000'000}, {"m", 60'000'000},
                                   {"s", 1'000'000},     {"ms", 1'000},       {"us", 1}};

Result<uint64_t> Parse(std::string_view text, std::span<const Unit> units, const char* example) {
  const auto bad = [&](const char* why) {
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" {} (write it like {})", text, why, example));
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || number < 0) return bad("is not an amount");
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.empty()) return bad("has no unit");
  for (const Unit& u : units) {
    if (u.name != unit) continue;
    const double value = number * static_cast<double>(u.factor);
    if (value > 9e15) return bad("is too large");
    if (value != std::floor(value)) return bad("is finer than the smallest unit");
    return static_cast<uint64_t>(value);
  }
  return bad("has an unknown unit");
}

std::string Format(uint64_t value, std::span<const Unit> units) {
  for (const Unit& u : units) {
    if (value < u.factor) continue;
    if (value % u.factor == 0) return fmt::format("{}{}", value / u.factor, u.name);
    return fmt::format("{:.4g}{}", static_cast<double>(value) / static_cast<double>(u.factor), u.name);
  }
  return fmt::format("0{}", units.back().name);
}

// "1g", "1Gi" and "1gib" as "1GiB"; anything else as it is.
std::string WithWholeUnit(std::string_view text) {
  const size_t at = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string unit(text.substr(at));
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view rest = std::string_view(unit).substr(std::min<size_t>(1, unit.size()));
  const bool known = !unit.empty() && std::string_view("kmgt").find(unit[0]) != std::string_view::npos;
  if (!known || (!rest.empty() && rest != "i" && rest != "ib")) return std::string(text);
  return fmt::format("{}{}iB", text.substr(0, at),
                     static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
}

}  // namespace

Result<uint64_t> ParseBytes(std::string_view text) { return Parse(WithWholeUnit(text), kByteUnits, "1GiB or 256MiB"); }
Result<uint64_t> ParseMicroseconds(std::string_view text) { return Parse(text, kReadTimeUnits, "2ms or 500us"); }
std::string FormatBytes(uint64_t bytes) { return Format(bytes, kByteUnits); }
std::string FormatMicroseconds(uint64_t us) { return Format(us, kTimeUnits); }

std::string FormatNanoseconds(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{}ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.1f}us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.1f}ms", value / 1e6);
  return fmt::format("{:.2f}s", value / 1e9);
}

}  // namespace vgpud
