// SPDX-License-Identifier: Apache-2.0
// All commands of vgpuctl with their options, as CLI11 parses them. Help, errors, completion and man pages are made
// from what this adds.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/vgpuctl/commands.h"

namespace vgpud::tools {

// Does what one command is for, and returns the exit code.
using Run = int(const CtlArgs&);

// Adds each command to `app`. Parsing fills `args`, and `*run` with the function of the command that was typed. Both
// outlive `app`.
void AddCommands(CLI::App& app, CtlArgs& args, Run** run);
// Says in one line why a command has no answer in this format of -o; empty: it has.
std::string WhyNotIn(const std::string& command, const std::string& format);
// Adds one command without options.
CLI::App* AddCommand(CLI::App& app, const char* name, const char* help, const char* example);

}  // namespace vgpud::tools
