// SPDX-License-Identifier: Apache-2.0
// Functions that a module refers to and nobody defines.
#pragma once

#include <span>
#include <string>

#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// Returns the name of the first such function, or an empty string. `texts`: what `code` was made of; they are read only
// where there is a declaration without a definition. Functions of CUDA's device runtime are not looked for: those that
// the soft GPU lacks end the kernel that calls them.
[[nodiscard]] std::string FirstUnresolved(const ProgramCode& code, std::span<const std::string> texts);

}  // namespace vgpud::soft
