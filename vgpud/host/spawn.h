// SPDX-License-Identifier: Apache-2.0
// Starts a program in namespaces of its own, without a copy of our memory: what posix_spawn does, and what it can't.
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {

struct Spawned {
  pid_t pid = -1;
  UniqueFd pidfd;
};
// Returns when the program runs; an error has left nothing behind. Any thread.
[[nodiscard]] Result<Spawned> SpawnProcess(const Child::Spec& spec);

}  // namespace vgpud::daemon
