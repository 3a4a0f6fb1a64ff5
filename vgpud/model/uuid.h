// SPDX-License-Identifier: Apache-2.0
// UUIDs of VFs: 16 bytes, RFC 4122.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpud::daemon {

using Uuid = std::array<uint8_t, 16>;

// A new one, version 4.
Uuid RandomUuid();
// "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
std::string ToText(const Uuid& uuid);
// nullopt: not in that form.
std::optional<Uuid> UuidFromText(std::string_view text);

}  // namespace vgpud::daemon
