// SPDX-License-Identifier: Apache-2.0
// Numbers that a service manager leaves in the environment.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace vgpud::daemon {

// Empty: the variable is not there, or no number.
inline std::optional<uint64_t> NumberInEnvironment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace vgpud::daemon
