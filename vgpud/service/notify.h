// SPDX-License-Identifier: Apache-2.0
// Telling whoever started us what we do: sd_notify(3), whose datagrams are simple enough that no library is needed for
// them. Without $NOTIFY_SOCKET nobody is told anything. Main thread.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace vgpud::daemon {

// Writes one byte to `ready_fd` and closes it (nothing if negative), and tells the service manager.
void NotifyReady(int ready_fd);
// Until the next NotifyReady.
void NotifyReloading();
void NotifyStopping();
// One line for who asks what the service does.
void NotifyStatus(const std::string& line);
void NotifyAlive();

// Is there a service manager that listens?
bool HasServiceManager();
// Within how long it wants to hear NotifyAlive again; empty: it doesn't.
std::optional<Ns> WatchdogInterval();

}  // namespace vgpud::daemon
