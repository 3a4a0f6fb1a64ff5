// SPDX-License-Identifier: Apache-2.0
// How many instructions a thread of a kernel runs at most, as far as its text tells.
#pragma once

#include <vector>

#include "gpu/ptx/ir.h"
#include "gpu/rewrite/bound.h"
#include "gpu/rewrite/flow.h"

namespace vgpud::rewrite {

// No parts: there is none. Known are kernels without loops; such with loops whose counter begins with what constants,
// parameters and the size of the block make of each other and is counted to another such number, or is shifted until
// nothing is left of it; and calls of functions with loops of constants, of vprintf, malloc and free. A call by address
// may be of any function of the module. Nobody waits for other blocks in there. `at_most`: of functions.
Bound BoundOf(const ptx::Module& module, const ptx::Function& kernel, uint64_t at_most, Budget& budget);

// Has `function` a branch back?
bool HasLoops(const ptx::Function& function);

}  // namespace vgpud::rewrite
