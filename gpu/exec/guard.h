// SPDX-License-Identifier: Apache-2.0
// What vgpud-exec does about itself before it meets a guest.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace vgpud::exec {

// A guest that takes memory away from under us (SIGBUS) ends this process with exit status 3 and one log line.
void ExitOnSigbus();
// What may be allocated in all, stacks and our own needs not included.
struct MemoryLimit {
  uint64_t bytes = 0;  // 0: no limit
  uint64_t most = 0;   // that RaiseMemoryLimit may make of it; less: nothing more
};
// No core dumps of guest memory, few file descriptors. `memory`: the last line, which the executor meets only if
// something escapes the VF's ledger; then it ends. `threads`: that compute here; `most_threads`: of all processes of
// its user, 0: no limit. `files`: of the guest's buffers that are kept open beside.
[[nodiscard]] Result<void> SetLimits(const MemoryLimit& memory, uint32_t threads, uint64_t most_threads,
                                     uint64_t files = 0);
// The limit allows `more` bytes beyond what SetLimits set, or as many as it may. Never lowers it.
[[nodiscard]] Result<void> RaiseMemoryLimit(uint64_t more);

}  // namespace vgpud::exec
