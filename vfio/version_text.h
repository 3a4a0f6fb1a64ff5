// The JSON text in VFIO_USER_VERSION. We need numbers of two capabilities at most, so the client's text is scanned
// for them and not parsed: whatever bytes come, this reads each once and allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vgpud {

// The number behind `"key":` (the first that is outside of other strings); none when it is missing, no whole number
// or above 2^53.
[[nodiscard]] std::optional<uint64_t> FindJsonNumber(std::string_view json, std::string_view key);

// Our answer.
std::string_view VersionText();

}  // namespace vgpud
