// SPDX-License-Identifier: Apache-2.0
// Manual pages, made of the same table as the help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace vgpud::tools {

// Writes vgpuctl.1 and a page for each command, vgpuctl-COMMAND.1, into `directory`, which is there.
[[nodiscard]] Result<void> WriteManual(const CLI::App& app, const std::string& version, const std::string& directory);

}  // namespace vgpud::tools
