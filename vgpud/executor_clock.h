// How much computing time an executor's GPU thread and its helpers have had: what tells a hung executor from one that
// the host gave no core. Read from the kernel's account under /proc, never from anything the executor writes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"

namespace vgpud {

class ExecutorClock {
 public:
  struct Times {
    uint64_t cpu_ns = 0;      // on a CPU. May lag by a tick of the kernel, and counts what a hypervisor took away
    uint64_t waiting_ns = 0;  // ready, and not given a CPU; 0 where it is not known
  };
  ExecutorClock() = default;
  // `pid` must stay unreaped while this is used, so that the number cannot come to mean another process.
  explicit ExecutorClock(pid_t pid) : pid_(pid) {}

  // So far, of the thread named kGpuThreadName (base/exec_link.h); where there is no such thread the computing time of
  // the whole process; 0 when it is gone. One pread after the first call.
  Times Read();
  // The same of the threads that help it (kGpuWorkerName), the one of them that has had most since MarkHelpers(): while
  // the GPU thread waits for a helper, only that one's time tells. To mark looks all threads up, to read is one pread
  // for each helper.
  void MarkHelpers();
  uint64_t HelperCpuNsSinceMark() const;
  // Is it ending (killed, or exited and not yet reaped)? Its slot may say kRunning until its memory has been taken
  // down.
  bool IsEnding() const;

 private:
  struct Helper {
    UniqueFd schedstat;
    uint64_t cpu_ns_at_mark;
  };
  std::vector<UniqueFd> OpenThreads(const std::string& name) const;

  pid_t pid_ = -1;
  UniqueFd schedstat_;
  std::vector<Helper> helpers_;
};

}  // namespace vgpud
