// What a kernel needs with everything that it calls.
#pragma once

#include <cstdint>

#include "gpu/soft/program.h"

namespace vgpud::soft {

inline constexpr uint64_t kMaxStackBytes = 64u << 20;  // of a warp

// Sets call_order of the program and levels, local_total, warp_specials, launches, info.uses_heap and info.local_bytes
// of every kernel, from what the decoder found out about each function. A kernel that calls, at any depth and by name,
// a function with an error has that error; one that needs too much gets its own. Takes time in proportion to the number
// of calls, whatever calls what.
//
// Recursion has as many levels as fit: at least 24 if there is room at all, at most 1024. Deeper is
// CUDA_ERROR_HARDWARE_STACK_ERROR when it happens.
void SolveCallDepth(ProgramCode& program);

// How many of `wanted` levels of recursion there is room for when each takes `bytes` of a warp's stack; at least 1.
uint64_t FittingLevels(uint64_t bytes, uint64_t wanted);

}  // namespace vgpud::soft
