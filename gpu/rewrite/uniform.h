// SPDX-License-Identifier: Apache-2.0
// Where all threads of a block that have not ended go the same way.
#pragma once

#include <optional>
#include <vector>

#include "gpu/rewrite/flow.h"

namespace vgpud::rewrite {

// For each block of `flow`: do all threads of the thread block that ever come to a place where they could meet again
// (a backward branch, a barrier, a collective, a call) come to this one equally often? Proved by: each branch that not
// all of them take the same way ends at its immediate post-dominator, threads that only have their end left do not
// count, and registers are the same in all threads when everything that they are made of is. False is always safe.
// Nothing: the budget is used up.
std::optional<std::vector<bool>> UniformBlocks(const ptx::Function& kernel, const Flow& flow, Budget& budget);

}  // namespace vgpud::rewrite
