// SPDX-License-Identifier: Apache-2.0
// Knobs as people type and read them. Which there are: vgpud/model/knobs.h. Their range is the daemon's business.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "vgpud/model/knobs.h"

namespace vgpud::tools {

using CtlJson = nlohmann::ordered_json;

// "300", "2ms", "25%" or "0.25", by the unit of the knob; "auto", "none", "off" and "default" for its default. As vgpud
// takes it: null for the default.
[[nodiscard]] Result<CtlJson> ParseKnob(const control::KnobInfo& knob, std::string_view text);
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
};
inline constexpr MemoryOption kMemoryOptions[] = {{"vram", "vram_bytes"}, {"host-memory", "host_memory_bytes"}};

// "guest-a:weight=300,limit=50%,vram=2GiB" in pieces.
struct VfInput {
  std::string name;
  std::vector<std::pair<std::string, CtlJson>> fields;  // of the API
};
[[nodiscard]] Result<VfInput> ParseVfInput(std::string_view text);

// "25%", of 0.25.
std::string FormatPart(double part);

}  // namespace vgpud::tools
