// What vgpud-exec does about itself before it meets a guest.
#pragma once

#include "base/result.h"

namespace vgpud {

// A guest that takes memory away from under us (SIGBUS) ends this process with exit status 3 and one log line.
void ExitOnSigbus();
// No core dumps of guest memory, few file descriptors.
[[nodiscard]] Result<void> SetLimits();

}  // namespace vgpud
