// SPDX-License-Identifier: Apache-2.0
// What a kernel needs with everything that it calls.
#pragma once

#include <cstdint>

#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// Sets call_order of the program and levels, local_total, warp_specials, launches, info.uses_heap and info.local_bytes
// of every kernel, from what the decoder found out about each function. A kernel that calls, at any depth and by name,
// a function with an error has that error; one that needs too much gets its own. Takes time in proportion to the number
// of calls, whatever calls what.
//
// Recursion has as many levels as fit: at least 24 if there is room at all, at most 1024. Deeper is
// CUDA_ERROR_HARDWARE_STACK_ERROR when it happens.
void SolveCallDepth(ProgramCode& program);

}  // namespace vgpud::soft
