// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/executor_clock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"

namespace vgpud::daemon {
namespace {

// The start of a small file under /proc, empty when it cannot be read.
std::string ReadStart(const std::string& path) {
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  char text[4096];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : -1;
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

// What follows `name` in /proc/PID/status.
const char* Field(const std::string& status, std::string_view name) {
  const size_t at = status.find(name);
  return at == std::string::npos ? "" : status.c_str() + at + name.size();
}

// The numbered field (proc(5), from 4 on) of a /proc/.../stat; none: there is no such file any more. The name in
// parentheses may hold anything; behind it comes field 3.
std::optional<uint64_t> StatField(const std::string& path, int number) {
  const std::string text = ReadStart(path);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const char* field = text.c_str() + name_end + 1;
  for (int skip = 3; skip < number && field != nullptr; ++skip) field = std::strchr(field + 1, ' ');
  if (field == nullptr) return std::nullopt;
  return std::strtoull(field, nullptr, 10);
}

// struct linux_dirent64 of getdents64(2), up to the name.
struct EntryHead {
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
};
constexpr size_t kNameAt = 19;
// Of a thread: a number of up to ten digits; and those of "." and "..".
constexpr size_t kEntryBytes = 32;

}  // namespace

// The kernel lists them in the order of their start. It is asked for no more than are wanted.
std::vector<pid_t> ExecutorClock::Threads() const {
  std::vector<pid_t> tids;
  const UniqueFd tasks{::open(fmt::format("/proc/{}/task", pid_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!tasks) return tids;
  std::vector<char> entries((most_threads_ + 2) * kEntryBytes);
  const long n = ::syscall(SYS_getdents64, tasks.get(), entries.data(), entries.size());
  for (long at = 0; at + static_cast<long>(kNameAt) < n;) {
    EntryHead head;
    std::memcpy(&head, entries.data() + at, sizeof head);
    const int tid = std::atoi(entries.data() + at + kNameAt);
    if (tid > 0 && tids.size() < most_threads_) tids.push_back(tid);
    at += head.bytes;
  }
  return tids;
}

// schedstat: time on a CPU, time in a run queue (Documentation/scheduler/sched-stats.rst of Linux).
ExecutorClock::Thread ExecutorClock::Look(pid_t tid) const {
  Thread thread;
  const std::string times = ReadStart(fmt::format("/proc/{}/task/{}/schedstat", pid_, tid));
  const std::string status = ReadStart(fmt::format("/proc/{}/task/{}/status", pid_, tid));
  if (times.empty() || status.empty()) return thread;
  thread.tid = tid;
  char* rest = nullptr;
  thread.cpu_ns = std::strtoull(times.c_str(), &rest, 10);
  thread.waited_ns = std::strtoull(rest, nullptr, 10);
  thread.runnable = *Field(status, "\nState:\t") == 'R';
  thread.sleeps = std::strtoull(Field(status, "\nvoluntary_ctxt_switches:\t"), nullptr, 10);
  return thread;
}

void ExecutorClock::Mark() {
  marked_at_ns_ = MonotonicNs();
  process_cpu_ns_ = ProcessCpuNs();
  faults_ = FaultsSoFar();
  marked_.clear();
  for (const pid_t tid : Threads())
    if (const Thread thread = Look(tid); thread.tid >= 0) marked_.push_back(thread);
}

ExecutorClock::Times ExecutorClock::SinceMark() const {
  struct Since {
    uint64_t cpu_ns, waited_ns;
    bool ready;
  };
  Times times;
  times.elapsed_ns = MonotonicNs() - marked_at_ns_;
  times.known = !marked_.empty();
  const Faults faults = FaultsSoFar();
  times.minor_faults = faults.minor - std::min(faults.minor, faults_.minor);
  times.major_faults = faults.major - std::min(faults.major, faults_.major);
  const uint64_t all_ns = ProcessCpuNs() - std::min(ProcessCpuNs(), process_cpu_ns_);
  if (!times.known) times.cpu_ns = all_ns;
  std::vector<Since> threads;
  uint64_t seen_ns = 0, ready = 0;
  for (const Thread& then : marked_) {
    const Thread now = Look(then.tid);
    if (now.tid < 0) continue;
    threads.push_back({now.cpu_ns - std::min(now.cpu_ns, then.cpu_ns),
                       now.waited_ns - std::min(now.waited_ns, then.waited_ns),
                       now.runnable && now.sleeps == then.sleeps});
    seen_ns += threads.back().cpu_ns;
    ready += threads.back().ready;
  }
  // A thread's account lags by up to a tick of the kernel while it runs, that of the process does not.
  const uint64_t lag_ns = ready == 0 ? 0 : (all_ns - std::min(all_ns, seen_ns)) / ready;
  for (Since& thread : threads) {
    if (thread.ready) {
      const uint64_t open_ns = times.elapsed_ns - std::min(times.elapsed_ns, thread.cpu_ns + thread.waited_ns);
      thread.cpu_ns += std::min(lag_ns, open_ns);
      // A wait that goes on is in no account yet: what of the time it did not compute, it waited.
      thread.waited_ns = std::max(thread.waited_ns, times.elapsed_ns - std::min(times.elapsed_ns, thread.cpu_ns));
    }
    times.cpu_ns = std::max(times.cpu_ns, thread.cpu_ns);
    times.waited_ns = std::max(times.waited_ns, thread.waited_ns);
    times.ready |= thread.ready;
  }
  return times;
}

uint64_t ExecutorClock::ProcessCpuNs() const {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

bool ExecutorClock::IsEnding() const {
  std::vector<pid_t> tids = Threads();
  if (tids.empty()) tids.push_back(pid_);
  return std::all_of(tids.begin(), tids.end(), [this](pid_t tid) { return IsEnding(tid); });
}

bool ExecutorClock::IsEnding(pid_t tid) const {
  constexpr uint64_t kExiting = 0x4;  // PF_EXITING
  constexpr int kFlags = 9;
  const auto flags = StatField(fmt::format("/proc/{}/task/{}/stat", pid_, tid), kFlags);
  return !flags || (*flags & kExiting) != 0;
}

ExecutorClock::Faults ExecutorClock::FaultsSoFar() const {
  constexpr int kMinor = 10, kMajor = 12;
  const std::string path = fmt::format("/proc/{}/stat", pid_);
  return {StatField(path, kMinor).value_or(0), StatField(path, kMajor).value_or(0)};
}

}  // namespace vgpud::daemon
