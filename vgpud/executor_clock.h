// How much computing time an executor's GPU thread has had: what tells a hung executor from one that the host gave no
// core. Read from the kernel's account under /proc, never from anything the executor writes.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/fd.h"

namespace vgpud {

class ExecutorClock {
 public:
  ExecutorClock() = default;
  // `pid` must stay unreaped while this is used, so that the number cannot come to mean another process.
  explicit ExecutorClock(pid_t pid) : pid_(pid) {}

  // Computing time so far of the thread named kGpuThreadName (base/exec_link.h), in ns; of the whole process where
  // there is no such thread; 0 when it is gone. One pread after the first call.
  uint64_t CpuNs();
  // Is it ending (killed, or exited and not yet reaped)? Its slot may say kRunning until its memory has been taken
  // down.
  bool IsEnding() const;

 private:
  UniqueFd OpenGpuThread() const;

  pid_t pid_ = -1;
  UniqueFd schedstat_;
};

}  // namespace vgpud
