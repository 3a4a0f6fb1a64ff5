// SPDX-License-Identifier: Apache-2.0
// Telling whoever started us that we serve. Main thread.
#pragma once

namespace vgpud::daemon {

// Writes one byte to `ready_fd` and closes it (nothing if negative), and tells the service manager behind
// $NOTIFY_SOCKET (sd_notify(3)), if there is one.
void NotifyReady(int ready_fd);
void NotifyStopping();

}  // namespace vgpud::daemon
