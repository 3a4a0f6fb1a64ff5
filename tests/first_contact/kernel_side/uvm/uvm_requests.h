// SPDX-License-Identifier: Apache-2.0
// The ioctls of the file of unified memory: which memory is where for a process's cards.
#pragma once

#include <cstdint>

#include "tests/first_contact/kernel_side/rm/machine.h"
#include "tests/first_contact/kernel_side/rm/open_file.h"

namespace vgpud::kernel_side {

// 0, or an errno. The parameters are in the caller, at `argument`.
int DoUvmRequest(Machine& machine, OpenFile& file, const Caller& caller, uint32_t request, uint64_t argument);

}  // namespace vgpud::kernel_side
