// SPDX-License-Identifier: Apache-2.0
// Workload files: TOML, described in docs/simulator.md.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tools/sim/workload.h"

namespace vgpud::tools {

// Errors are one line: file, line, field, value and what is allowed.
[[nodiscard]] Result<Workload> LoadWorkload(const std::string& path);
// `name` stands for the file in errors.
[[nodiscard]] Result<Workload> ParseWorkload(std::string_view toml, const std::string& name);

}  // namespace vgpud::tools
