// SPDX-License-Identifier: Apache-2.0
// The table at the end of ptx_bench: the soft GPU with one and two threads, and PoCL beside it, measured in turns.
#pragma once

#include <string>

namespace vgpud::bench {

// Prints it. `folder`: of the .ptx files; `rounds`: the best of so many counts.
void PrintKernelTable(const std::string& folder, int rounds);

}  // namespace vgpud::bench
