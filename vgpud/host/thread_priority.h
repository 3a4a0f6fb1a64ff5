// SPDX-License-Identifier: Apache-2.0
// The priority and the processors of the threads of an executor. Those that run kernels must be on a processor to see
// the end of their slice. Only they, and not what they start: an executor's other work is worth no more than anybody's.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/result.h"

namespace vgpud::daemon {

// Gives at most `most` threads of process `pid`, which must not be reaped yet, that have the names of GPU threads
// (base/exec_link.h) a nice value of -10, the shortest time slice of Linux (100 us, from 6.12 on), so that they get a
// processor at once when their turn begins, and these processors unless there are none. How many of these threads there
// are now; the kernel refuses the nice value to ordinary users, harmlessly.
size_t RaiseGpuThreads(pid_t pid, size_t most, const std::optional<cpu_set_t>& processors);
// The processor time so far of the same threads.
Ns GpuThreadsTime(pid_t pid, size_t most);

inline constexpr int kOrdinaryNice = 0;
inline constexpr int kLowestNice = 19;
// What the other threads of a process get; none: what they have.
struct OtherThreads {
  // An ordinary user can only make it higher: then who has a higher one keeps it.
  std::optional<int> nice = {};
  std::optional<cpu_set_t> processors = {};
};
// Of those with names of GPU threads the first `spared` keep what they have.
void SetOtherThreads(pid_t pid, size_t spared, const OtherThreads& what);
// Those of the calling process.
cpu_set_t AllProcessors();
cpu_set_t OneProcessor(int cpu);
cpu_set_t AllProcessorsBut(int cpu, cpu_set_t all = AllProcessors());

// The calling thread of vgpud gets processors whatever VFs do (nice -15 and the shortest time slice; all VFs together
// weigh less); what it starts has an ordinary priority. Refused to ordinary users, harmlessly: false.
bool RaiseOwnThread();
// Linux divides processors among sessions first, and looks at nice values only within one (autogroup, sched(7)); so it
// is for processes of the root control group. Gives the session of this process the nice value of RaiseOwnThread, which
// is for a process that leads it: others would gain by it. Nothing where sessions do not count. The error is for a log.
[[nodiscard]] Result<void> RaiseOwnSession();
// The calling thread gets the ordinary priority: what it does can wait.
void LowerOwnThread();

}  // namespace vgpud::daemon
