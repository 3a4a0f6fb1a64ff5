// SPDX-License-Identifier: Apache-2.0
// One thing that happened to a VF or a GPU, or one line that a process of a VF logged.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "vgpud/model/settings.h"

namespace vgpud::daemon {

// The kinds of events, as clients see them.
namespace event_kind {
inline constexpr const char* kStarted = "started";      // vgpud has started and serves this GPU
inline constexpr const char* kCreated = "created";      // a client created the VF
inline constexpr const char* kRestored = "restored";    // the VF of an earlier vgpud is there again
inline constexpr const char* kChanged = "changed";      // settings; the record has old and new values
inline constexpr const char* kReset = "reset";          // a client reset the VF
inline constexpr const char* kParked = "parked";        // the scheduler stopped a VF that hung repeatedly
inline constexpr const char* kFault = "fault";          // a kernel of a program failed
inline constexpr const char* kKilled = "killed";        // vgpud killed an executor
inline constexpr const char* kEnded = "ended";          // an executor ended that was not told to
inline constexpr const char* kFailed = "failed";        // the VF lost its vgpud-vf
inline constexpr const char* kRemade = "remade";        // vgpud made a failed VF again
inline constexpr const char* kLost = "lost";            // vgpud could not make a VF of its definition
inline constexpr const char* kDestroyed = "destroyed";  // the VF is gone
inline constexpr const char* kAlarm = "alarm";          // an administrator has to act
}  // namespace event_kind

struct Record {
  const char* kind;       // of event_kind; nullptr: a line of a log
  std::string vf = {};    // empty: about the GPU
  std::string gpu = {};   // empty: not known
  std::string by = {};    // who caused it, as "user 1000"; empty: vgpud itself
  pid_t pid = 0;          // of a process of the VF on the host; 0: none
  std::string text = {};  // one line; escaped and cut by RecordLog
  std::vector<Change> changes = {};
  uint64_t number = 0;   // set by RecordLog: 1, 2, ...
  uint64_t unix_ms = 0;  // set by RecordLog, unless it is set
};

}  // namespace vgpud::daemon
