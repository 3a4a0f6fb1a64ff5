// SPDX-License-Identifier: Apache-2.0
// Knobs as people type and read them. Which there are: vgpud/model/knobs.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "vgpud/model/api.h"
#include "vgpud/model/knobs.h"

namespace vgpud::tools {

using CtlJson = nlohmann::ordered_json;

// "300", "2ms", "25%" or "0.25", "yes", by the unit of the knob, in its range; "auto", "none", "off" and "default" for
// its default. As vgpud takes it: null for the default.
[[nodiscard]] Result<CtlJson> ParseKnob(const control::KnobInfo& knob, std::string_view text);
// "100us to 1s": what is allowed, as it is typed.
std::string RangeText(const control::KnobInfo& knob);
// "3=200": of group 3.
struct GroupInput {
  std::string group;
  CtlJson value;
};
[[nodiscard]] Result<GroupInput> ParseGroupKnob(const control::KnobInfo& knob, std::string_view text);

// The memory of a VF: an option, and the field of the API.
struct MemoryOption {
  const char* option;
  const char* field;
  uint64_t least, most;
};
inline constexpr MemoryOption kMemoryOptions[] = {
    {"vram", "vram_bytes", control::kMinVramBytes, control::kMaxVramBytes},
    {"host-memory", "host_memory_bytes", control::kMinHostMemoryBytes, control::kMaxHostMemoryBytes},
};
// "1GiB" or "256M", in the range of the option: bytes.
[[nodiscard]] Result<CtlJson> ParseMemory(const MemoryOption& memory, std::string_view text);

// "guest-a:weight=300,limit=50%,vram=2GiB" in pieces.
struct VfInput {
  std::string name;
  std::vector<std::pair<std::string, CtlJson>> fields;  // of the API
};
[[nodiscard]] Result<VfInput> ParseVfInput(std::string_view text);

// "25%", of 0.25.
std::string FormatPart(double part);

}  // namespace vgpud::tools
