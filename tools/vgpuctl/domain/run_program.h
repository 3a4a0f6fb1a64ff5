// SPDX-License-Identifier: Apache-2.0
// Another program's output, for a limited time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace vgpud::tools {

// What `program`, a path, writes to its standard output, at most 1 MiB; its standard error is dropped. Nothing: it
// can't be started, failed, or was still running after `limit` (then it is killed).
std::optional<std::string> RunProgram(const std::vector<std::string>& words, std::chrono::milliseconds limit);
// Is it a program that nobody but root could have put there? Only such a one is run because a file names it.
bool IsTrusted(const std::string& program);

}  // namespace vgpud::tools
