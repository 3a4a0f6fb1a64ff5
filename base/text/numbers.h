// SPDX-License-Identifier: Apache-2.0
// Reads numbers from text that people or other programs wrote. The whole text must be the number.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace vgpud {

// "300"; "-1" where T has a sign. Nothing if the text is something else or T can't hold it.
template <class T>
std::optional<T> ParseInteger(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// "0.25" or "25%", both as 0.25. Any finite number, also above 1 or below 0.
inline std::optional<double> ParseFraction(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return percent ? number / 100 : number;
}

}  // namespace vgpud
