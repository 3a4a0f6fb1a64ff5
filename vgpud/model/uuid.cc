// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/uuid.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <charconv>

namespace vgpud::daemon {
namespace {

constexpr size_t kTextBytes = 36;
constexpr bool DashAt(size_t text_position) {
  return text_position == 8 || text_position == 13 || text_position == 18 || text_position == 23;
}

}  // namespace

Uuid RandomUuid() {
  Uuid uuid{};
  [[maybe_unused]] const ssize_t n = ::getrandom(uuid.data(), uuid.size(), 0);
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

std::string ToText(const Uuid& uuid) {
  std::string text;
  for (const uint8_t byte : uuid) {
    if (DashAt(text.size())) text += '-';
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

std::optional<Uuid> UuidFromText(std::string_view text) {
  if (text.size() != kTextBytes) return std::nullopt;
  Uuid uuid{};
  size_t at = 0;
  for (uint8_t& byte : uuid) {
    if (DashAt(at) && text[at++] != '-') return std::nullopt;
    const char* end = text.data() + at + 2;
    if (std::from_chars(text.data() + at, end, byte, 16).ptr != end) return std::nullopt;
    at += 2;
  }
  return uuid;
}

}  // namespace vgpud::daemon
