// SPDX-License-Identifier: Apache-2.0
// How many instructions a thread of a kernel runs at most, as far as its text tells.
#pragma once

#include <cstdint>

#include "gpu/ptx/ir.h"
#include "gpu/rewrite/flow.h"

namespace vgpud::rewrite {

// 0: not known. Known are kernels without loops; such with loops whose counter begins with a constant and is counted to
// another one, or is shifted until nothing is left of it; and calls of such functions, of vprintf, malloc and free. A
// call by address may be of any function of the module. Nobody waits for other blocks in there. `at_most`: more is not
// known either.
uint64_t MostInstructions(const ptx::Module& module, const ptx::Function& kernel, uint64_t at_most, Budget& budget);

// Has `function` a branch back?
bool HasLoops(const ptx::Function& function);

}  // namespace vgpud::rewrite
