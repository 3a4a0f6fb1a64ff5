// SPDX-License-Identifier: Apache-2.0
// Explains why a command line could not be parsed, and names the way out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vgpud::tools {

// Returns one line. `words` follow the program's name; `error` is what CLI11 said of them.
std::string WhatIsWrong(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error);
// Returns one line about a command line that could be parsed and has an option where another one's value should be;
// empty: it has none.
std::string WhatWasMistaken(const CLI::App& app, const std::vector<std::string>& words);
// Says in one line that `word` is no command, and which one was probably meant.
std::string NoSuchCommand(const CLI::App& app, const std::string& word);
// Finds a command by its name or its other name; nullptr: there is none.
const CLI::App* FindCommand(const CLI::App& app, const std::string& word);

}  // namespace vgpud::tools
