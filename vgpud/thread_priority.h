// The priority of the threads of an executor that run kernels: they must be on a processor to see the end of their
// slice. Only they, and not what they start: an executor's other work is worth no more than anybody's.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace vgpud {

// Gives at most `most` threads of process `pid`, which must not be reaped yet, that have the names of GPU threads
// (base/exec_link.h) a nice value of -10. How many of these there are now; the kernel refuses it to ordinary users,
// harmlessly.
size_t RaiseGpuThreads(pid_t pid, size_t most);

}  // namespace vgpud
