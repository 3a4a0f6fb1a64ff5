// SPDX-License-Identifier: Apache-2.0
// The jail of the processes that face a guest: no new privileges, and only the system calls on the list of their kind,
// with the arguments that it allows (base/jail/rules.h). Anything else ends the process; of one with a driver it fails
// with EPERM, but for what no driver does.
#pragma once

#include "base/fd.h"
#include "base/jail/rules.h"
#include "base/result.h"

namespace vgpud {

enum class JailWatch {
  kNone,  // the kernel decides, and tells nobody but its audit log of the end of a process
  kAsk,   // whoever holds the watch descriptor learns of a call without a row, decides, and ends the process
};

// Locks this thread and every one that it starts from now on into the jail (kExecDriver: all that there are); there is
// no way out. Call it after
// everything that needs paths or new sockets, before a process has other threads than those that enter one too. kAsk:
// the answer is the watch descriptor, for base/jail/syscall_watch.h in the process that watches; until it has it, a
// call without a row waits. An invalid descriptor: this kernel gives none (it is older than Linux 5.9, or something
// around us watches already) and the jail is that of kNone, or this is a build with a sanitizer and there is no jail;
// both are logged.
// `nested`: RulesForNested as well.
[[nodiscard]] Result<UniqueFd> EnterJail(JailKind kind, JailWatch watch = JailWatch::kNone, bool nested = false);

}  // namespace vgpud
