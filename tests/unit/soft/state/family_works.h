// SPDX-License-Identifier: Apache-2.0
// Works (soft_works.h) whose kernels launch kernels.
#pragma once

#include "tests/unit/soft/state/soft_works.h"

namespace vgpud::soft {

// Three generations below the first, with tail launches, launches that are prepared and never started, and errors.
Work FamilyTree(SoftMachine& machine);
// Four blocks that each launch many, which several threads run.
Work FamilyOfManyBlocks(SoftMachine& machine);

}  // namespace vgpud::soft
