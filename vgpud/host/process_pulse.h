// SPDX-License-Identifier: Apache-2.0
// What the kernel's account says a process is doing. One pread each time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "base/fd.h"
#include "vgpud/host/watchdog.h"

namespace vgpud::daemon {

// Of a line of /proc/PID/stat (proc(5)); nullopt: it is none. `ticks_per_second`: sysconf(_SC_CLK_TCK).
std::optional<Watchdog::Pulse> ParsePulse(std::string_view stat, long ticks_per_second);

class ProcessPulse {
 public:
  // `pid` must be a child that is not reaped yet.
  explicit ProcessPulse(pid_t pid);
  // Of the whole process. What cannot be read is a process that neither wants nor had a processor.
  Watchdog::Pulse Read() const;

 private:
  UniqueFd stat_;
};

}  // namespace vgpud::daemon
