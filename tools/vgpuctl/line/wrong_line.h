// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line that could not be parsed, in words that name the way out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vgpud::tools {

// One line, of the words after the program's name. `error`: what CLI11 said of them.
std::string WhatIsWrong(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error);
// Of a word that should be a command: one line with the command that was probably meant.
std::string NoSuchCommand(const CLI::App& app, const std::string& word);
// The command of that name or other name; nullptr: there is none.
const CLI::App* FindCommand(const CLI::App& app, const std::string& word);
// Whether these words ask for this format of output (-o, --output). Also where they are wrong otherwise.
bool AsksFor(const std::vector<std::string>& words, const std::string& format);

}  // namespace vgpud::tools
