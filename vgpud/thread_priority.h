// The priority of the threads of an executor that run kernels: they must be on a processor to see the end of their
// slice. Only they, and not what they start: an executor's other work is worth no more than anybody's.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "base/clock.h"

namespace vgpud {

// Gives at most `most` threads of process `pid`, which must not be reaped yet, that have the names of GPU threads
// (base/exec_link.h) a nice value of -10. How many of these there are now; the kernel refuses it to ordinary users,
// harmlessly.
size_t RaiseGpuThreads(pid_t pid, size_t most);
// The processor time so far of the same threads.
Ns GpuThreadsTime(pid_t pid, size_t most);

inline constexpr int kOrdinaryNice = 0;
inline constexpr int kLowestNice = 19;
// Gives all other threads of the process this nice value: of those with names of GPU threads the first `spared` keep
// theirs. An ordinary user can only make it higher: then who has a higher one keeps it.
void SetOtherThreads(pid_t pid, size_t spared, int nice);

// The calling thread of vgpud gets processors whatever VFs do (nice -15; all VFs together weigh less); what it starts
// has an ordinary priority. Refused to ordinary users, harmlessly: false.
bool RaiseOwnThread();

}  // namespace vgpud
