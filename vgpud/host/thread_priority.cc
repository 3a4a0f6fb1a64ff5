// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/thread_priority.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/exec_link.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

// How a thread competes for processors. Linux 6.12 and newer let a thread name its time slice: a woken thread with a
// short one preempts a running thread with a longer one at once instead of after a tick, and gets no more time by it.
// Older kernels ignore it (sched_setattr(2), Documentation/scheduler/sched-eevdf.rst).
struct Priority {
  int32_t nice = 0;
  uint64_t slice_ns = 0;  // 0: the kernel's
};
constexpr uint64_t kShortestSliceNs = 100'000;  // the kernel takes no shorter one
constexpr Priority kGpuThread{-10, kShortestSliceNs};
constexpr Priority kOwnThread{-15, kShortestSliceNs};
constexpr int kMostThreads = 128;  // one with more will be killed anyway

// struct sched_attr of linux/sched/types.h, first version, which glibc does not have before 2.41.
struct SchedAttributes {
  uint32_t size = sizeof(SchedAttributes);
  uint32_t policy = 0;  // SCHED_OTHER
  uint64_t flags = 1;   // SCHED_FLAG_RESET_ON_FORK: threads that it starts begin at 0
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(SchedAttributes) == 48);

bool SetPriority(pid_t tid, Priority priority) {
  SchedAttributes attributes;
  attributes.nice = priority.nice;
  attributes.runtime = priority.slice_ns;
  return ::syscall(SYS_sched_setattr, tid, &attributes, 0) == 0;
}

// Nothing where none of them is one that the thread may have.
void SetProcessors(pid_t tid, const cpu_set_t& set) { (void)::sched_setaffinity(tid, sizeof set, &set); }

// Calls `visit(tid, is_gpu_thread)` for the threads of a process, in the order of their start, at most kMostThreads of
// them; names are what the process says. False ends it.
template <class F>
void ForEachThread(pid_t pid, F visit) {
  std::error_code error;
  int left = kMostThreads;
  for (fs::directory_iterator it(fmt::format("/proc/{}/task", pid), error), end; !error && it != end && left-- > 0;
       it.increment(error)) {
    std::string name;
    std::getline(std::ifstream(it->path() / "comm"), name);
    const std::string number = it->path().filename();
    pid_t tid = -1;
    if (std::from_chars(number.data(), number.data() + number.size(), tid).ec != std::errc{}) continue;
    if (!visit(tid, name == exec_link::kGpuThreadName || name == exec_link::kGpuWorkerName)) return;
  }
}

}  // namespace

size_t RaiseGpuThreads(pid_t pid, size_t most, const std::optional<cpu_set_t>& processors) {
  size_t found = 0;
  ForEachThread(pid, [&](pid_t tid, bool gpu) {
    if (gpu) (void)SetPriority(tid, kGpuThread);
    if (gpu && processors) SetProcessors(tid, *processors);
    found += gpu;
    return found < most;
  });
  return found;
}

Ns GpuThreadsTime(pid_t pid, size_t most) {
  Ns sum{0};
  size_t found = 0;
  ForEachThread(pid, [&](pid_t tid, bool gpu) {
    uint64_t on_cpu_ns = 0;
    // Documentation/scheduler/sched-stats.rst of Linux: the first figure.
    if (gpu) std::ifstream(fmt::format("/proc/{}/task/{}/schedstat", pid, tid)) >> on_cpu_ns;
    sum += Ns{static_cast<int64_t>(on_cpu_ns)};
    found += gpu;
    return found < most;
  });
  return sum;
}

void SetOtherThreads(pid_t pid, size_t spared, const OtherThreads& what) {
  size_t found = 0;
  ForEachThread(pid, [&](pid_t tid, bool gpu) {
    if (gpu && found < spared) return ++found != 0;
    if (what.nice) (void)SetPriority(tid, {*what.nice});
    if (what.processors) SetProcessors(tid, *what.processors);
    return true;
  });
}

cpu_set_t AllProcessors() {
  cpu_set_t all;
  CPU_ZERO(&all);
  (void)::sched_getaffinity(::getpid(), sizeof all, &all);
  return all;
}

cpu_set_t AllProcessorsBut(int cpu, cpu_set_t all) {
  CPU_CLR(static_cast<size_t>(cpu), &all);
  return all;
}

cpu_set_t OneProcessor(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  return one;
}

bool RaiseOwnThread() { return SetPriority(0, kOwnThread); }

Result<void> RaiseOwnSession() {
  constexpr const char* kFile = "/proc/self/autogroup";
  int enabled = 0;
  std::ifstream("/proc/sys/kernel/sched_autogroup_enabled") >> enabled;
  if (enabled == 0) return {};
  constexpr const char* kWhatThen = "where VFs keep all processors busy, vgpud may answer late";
  if (::getsid(0) != ::getpid())
    return Fail(std::errc::operation_not_permitted,
                fmt::format("vgpud shares its session with other programs: {} (start it as a service, or with setsid)",
                            kWhatThen));
  std::ofstream file(kFile);
  if (file << kOwnThread.nice << std::flush) return {};
  return FailErrno(fmt::format("cannot write {} to {}: {}", kOwnThread.nice, kFile, kWhatThen));
}

void LowerOwnThread() { (void)SetPriority(0, {kOrdinaryNice}); }

}  // namespace vgpud::daemon
