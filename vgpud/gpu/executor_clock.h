// SPDX-License-Identifier: Apache-2.0
// What an executor's threads have done since it was told to leave the GPU: what tells one that hangs or sleeps from one
// that the host gave no CPU. Read from the kernel's accounts under /proc, never from anything the executor writes; no
// descriptor stays open, and no more threads are looked at than the executor was told to have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace vgpud::daemon {

class ExecutorClock {
 public:
  // Of all threads looked at, the one that says most against the executor, or for it.
  struct Times {
    uint64_t elapsed_ns = 0;  // since the mark
    uint64_t cpu_ns = 0;      // the most that one had; counts what a hypervisor took away
    uint64_t waited_ns = 0;   // the most that one was ready and given no CPU; a wait that ended since counts as a whole
    uint64_t minor_faults = 0;  // of the whole process; major: from disk
    uint64_t major_faults = 0;
    bool ready = false;  // one has not slept since the mark: it computes, or waits for a CPU
    bool known = false;  // false: the threads cannot be seen; then cpu_ns is of the whole process
  };
  ExecutorClock() = default;
  // `pid` must stay unreaped while this is used, so that the number cannot come to mean another process. The first
  // `most_threads` threads are looked at, in the order in which they were started.
  ExecutorClock(pid_t pid, uint32_t most_threads) : pid_(pid), most_threads_(most_threads) {}

  // Two small files for each thread and one for all, here and in SinceMark.
  void Mark();
  Times SinceMark() const;
  // Of all its threads so far; 0 when it is gone. One system call.
  uint64_t ProcessCpuNs() const;
  // Are all its threads ending (killed, or exited and not yet reaped)? Its slot may say kRunning until its memory has
  // been taken down. The first thread alone may end long before the others.
  bool IsEnding() const;

 private:
  struct Thread {
    pid_t tid = -1;
    uint64_t cpu_ns = 0;
    uint64_t waited_ns = 0;
    uint64_t sleeps = 0;  // times that it left its CPU of its own will
    bool runnable = false;
  };
  struct Faults {
    uint64_t minor = 0;
    uint64_t major = 0;
  };
  std::vector<pid_t> Threads() const;
  Faults FaultsSoFar() const;
  Thread Look(pid_t tid) const;
  bool IsEnding(pid_t tid) const;

  pid_t pid_ = -1;
  uint32_t most_threads_ = 0;
  uint64_t marked_at_ns_ = 0;
  uint64_t process_cpu_ns_ = 0;
  Faults faults_;
  std::vector<Thread> marked_;
};

}  // namespace vgpud::daemon
