// SPDX-License-Identifier: Apache-2.0
// NAME.KEY=VALUE: how flags give one key of one of many things, like profiles, that are tables in configuration files.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud::daemon {

struct NamedSetting {
  std::string name;
  std::string_view key;  // may have dots
  std::string_view value;
};
// Parts of `text`, which outlives them. `kind` and `example` ("small.weight=50") are for errors; the name is one that a
// VF can have (model/api.h).
[[nodiscard]] Result<NamedSetting> ParseNamedSetting(std::string_view kind, std::string_view text,
                                                     std::string_view example);

}  // namespace vgpud::daemon
