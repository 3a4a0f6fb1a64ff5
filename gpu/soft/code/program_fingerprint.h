// SPDX-License-Identifier: Apache-2.0
// What must be the same for saved program counters, frames and registers to mean the same.
#pragma once

#include <cstdint>

#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// Of all that the decoder laid out: instructions with their operands, frames, constants, call sites. The same for all
// instruction sets, and in every process of the same build.
uint64_t Fingerprint(const Program& program);

}  // namespace vgpud::soft
