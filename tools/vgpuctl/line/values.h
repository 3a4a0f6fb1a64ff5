// SPDX-License-Identifier: Apache-2.0
// Values of options that vgpuctl checks itself, before it asks vgpud. Each check says what is wrong and what is right.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace vgpud::tools {

// One of these words. Its description is "{a,b}".
CLI::Validator OneOf(const std::vector<std::string>& words);
// The words of OneOf that `option` is checked with; none: it takes others, too.
std::vector<std::string> AllowedWords(const CLI::Option& option);
// A whole number from 0 to `most`.
CLI::Validator NumberUpTo(unsigned most);
// A time that ParsePatience takes.
CLI::Validator Patience();

// "2s", "500ms" or, in seconds, "2"; from 1 ms to an hour.
[[nodiscard]] Result<std::chrono::milliseconds> ParsePatience(const std::string& text);

}  // namespace vgpud::tools
