// SPDX-License-Identifier: Apache-2.0
// What was typed for a knob, as the daemon takes it: null for its default. For the sources of subcommands only.
#pragma once

#include <type_traits>
#include <variant>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/knobs.h"

namespace vgpud::tools {

inline CtlJson KnobJson(const KnobInput& input) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return CtlJson(nullptr);
        else
          return CtlJson(value);
      },
      input);
}

}  // namespace vgpud::tools
