// SPDX-License-Identifier: Apache-2.0
// Calls in a process that has entered a jail.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>

#include "base/jail/jail.h"

namespace vgpud {

inline constexpr int kKilled = 1000;

// What the call did inside: 0 when it succeeded, else its errno; kKilled when it ended the process.
inline int InJail(JailKind kind, long (*call)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!EnterJail(kind)) ::_exit(200);
    ::_exit(call() >= 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSYS ? kKilled : -WTERMSIG(status);
  return WEXITSTATUS(status);
}

inline long Map(int protection, int flags, uint64_t at = 0) {
  void* p = ::mmap(reinterpret_cast<void*>(at), 4096, protection, flags, -1, 0);
  return p == MAP_FAILED ? -1 : 0;
}
inline long StartThread() {
  std::thread([] {}).join();
  return 0;
}
inline constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

}  // namespace vgpud
