// SPDX-License-Identifier: Apache-2.0
// Completes command lines for shells. One engine decides; the script of each shell only asks it and shows the answer.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/vgpuctl/contact.h"

namespace vgpud::tools {

// Prints what the last of `words` may become, each in a line: WORD, tab, DESCRIPTION. `words` follow the program's
// name. Asks vgpud for names, for a second at most, and says nothing if it has none. Exit code 0, or kFilesFit.
int Complete(const CLI::App& app, const std::vector<std::string>& words);
// Names of files fit there.
inline constexpr int kFilesFit = 9;

// The script of "bash", "zsh" or "fish"; empty: there is none for that shell.
std::string CompletionScript(const std::string& shell);

}  // namespace vgpud::tools
