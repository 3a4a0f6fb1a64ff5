// SPDX-License-Identifier: Apache-2.0
// What must be the same for saved program counters, frames and registers to mean the same.
#pragma once

#include <cstdint>

#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// Of how the decoder laid the code out: instructions with their operands, their places in the text, frames, call sites.
// The values of constants are not in it: they come from the text. The same for all instruction sets, and in every
// process of the same build.
uint64_t Fingerprint(const Program& program);

}  // namespace vgpud::soft
