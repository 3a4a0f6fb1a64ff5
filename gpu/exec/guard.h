// SPDX-License-Identifier: Apache-2.0
// What vgpud-exec does about itself before it meets a guest.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace vgpud::exec {

// A guest that takes memory away from under us (SIGBUS) ends this process with exit status 3 and one log line.
void ExitOnSigbus();
// No core dumps of guest memory, few file descriptors. `memory_bytes`: what may be allocated in all, stacks and our own
// needs not included; 0: no limit. The last line: whoever meets it, and not the VF's ledger before, ends. `threads`:
// that compute here; `most_threads`: of all processes of its user, 0: no limit. `files`: of the guest's buffers that
// are kept open beside.
[[nodiscard]] Result<void> SetLimits(uint64_t memory_bytes, uint32_t threads, uint64_t most_threads,
                                     uint64_t files = 0);

}  // namespace vgpud::exec
