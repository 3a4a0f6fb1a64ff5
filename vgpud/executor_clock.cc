#include "vgpud/executor_clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/exec_link.h"

namespace vgpud {
namespace {

// The start of a small file under /proc, empty when it cannot be read.
std::string ReadStart(const UniqueFd& fd) {
  char text[1024];
  const ssize_t n = fd ? ::pread(fd.get(), text, sizeof text, 0) : -1;
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

UniqueFd OpenFile(const std::string& path) { return UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)}; }

uint64_t ProcessCpuNs(pid_t pid) {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

// The accounts of the threads of that name.
std::vector<UniqueFd> ExecutorClock::OpenThreads(const std::string& name) const {
  std::vector<UniqueFd> found;
  const std::string tasks = fmt::format("/proc/{}/task", pid_);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory{::opendir(tasks.c_str()), &::closedir};
  if (directory == nullptr) return found;
  const std::string wanted = name + "\n";
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string thread = fmt::format("{}/{}", tasks, entry->d_name);
    if (entry->d_name[0] != '.' && ReadStart(OpenFile(thread + "/comm")) == wanted)
      found.push_back(OpenFile(thread + "/schedstat"));
  }
  return found;
}

// Two numbers and one more: time on a CPU, time in a run queue (Documentation/scheduler/sched-stats.rst of Linux).
ExecutorClock::Times ExecutorClock::Read() {
  if (!schedstat_)
    if (auto threads = OpenThreads(exec_link::kGpuThreadName); !threads.empty()) schedstat_ = std::move(threads[0]);
  const std::string text = ReadStart(schedstat_);
  if (text.empty()) return {ProcessCpuNs(pid_), 0};
  Times times;
  char* rest = nullptr;
  times.cpu_ns = std::strtoull(text.c_str(), &rest, 10);
  times.waiting_ns = std::strtoull(rest, nullptr, 10);
  return times;
}

void ExecutorClock::MarkHelpers() {
  helpers_.clear();
  for (UniqueFd& schedstat : OpenThreads(exec_link::kGpuWorkerName)) {
    const uint64_t now = std::strtoull(ReadStart(schedstat).c_str(), nullptr, 10);
    helpers_.push_back({std::move(schedstat), now});
  }
}

uint64_t ExecutorClock::HelperCpuNsSinceMark() const {
  uint64_t most = 0;
  for (const Helper& helper : helpers_) {
    const uint64_t now = std::strtoull(ReadStart(helper.schedstat).c_str(), nullptr, 10);
    if (now > helper.cpu_ns_at_mark) most = std::max(most, now - helper.cpu_ns_at_mark);
  }
  return most;
}

bool ExecutorClock::IsEnding() const {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING
  const std::string text = ReadStart(OpenFile(fmt::format("/proc/{}/stat", pid_)));
  // The name in parentheses may hold anything; behind it: state ppid pgrp session tty tpgid flags (proc(5)).
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return true;
  const char* field = text.c_str() + name_end + 1;
  for (int skip = 0; skip < 6 && field != nullptr; ++skip) field = std::strchr(field + 1, ' ');
  return field == nullptr || (std::strtoul(field, nullptr, 10) & kExiting) != 0;
}

}  // namespace vgpud
