// The jail of the processes that face a guest: no new privileges, and only the system calls on the list of their kind.
// Everything else fails with EPERM. The lists are data (base/jail.cc).
#pragma once

#include "base/result.h"

namespace vgpud {

enum class JailKind {
  kVf,    // vgpud-vf: sockets, eventfds and file reads and writes on fds it already has or is sent
  kExec,  // vgpud-exec with the soft GPU: the same plus threads and memory mappings
};

// Locks this process and every thread it starts from now on into the jail; there is no way out. Call it after
// everything that needs paths or new sockets. A build with a sanitizer stays outside, because the sanitizer's runtime
// needs more; that is logged.
[[nodiscard]] Result<void> EnterJail(JailKind kind);

}  // namespace vgpud
