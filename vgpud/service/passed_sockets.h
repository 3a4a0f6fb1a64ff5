// SPDX-License-Identifier: Apache-2.0
// Sockets that a service manager made and listens on until we do (sd_listen_fds(3)): clients that come before, or while
// this process is being replaced, wait instead of being refused.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace vgpud::daemon {

struct PassedSockets {
  int control = -1;  // AF_UNIX, where the control API is served
  int metrics = -1;  // AF_INET or AF_INET6, where the metrics are
};

// Takes those that are meant for this process ($LISTEN_PID, $LISTEN_FDS), which then are close-on-exec and don't block.
// None: all -1. An error: one that is neither, or two of a kind. Once, at start, before threads and other descriptors.
[[nodiscard]] Result<PassedSockets> TakePassedSockets();
// Is `fd` a listening socket at `path`?
[[nodiscard]] Result<void> CheckListensAt(int fd, const std::string& path);

}  // namespace vgpud::daemon
