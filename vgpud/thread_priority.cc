#include "vgpud/thread_priority.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/exec_link.h"

namespace vgpud {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kGpuThreadNice = -10;

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

}  // namespace

size_t RaiseGpuThreads(pid_t pid, size_t most) {
  size_t found = 0;
  std::error_code error;
  for (fs::directory_iterator it(fmt::format("/proc/{}/task", pid), error), end; !error && it != end && found < most;
       it.increment(error)) {
    std::string name;
    std::getline(std::ifstream(it->path() / "comm"), name);
    if (name != exec_link::kGpuThreadName && name != exec_link::kGpuWorkerName) continue;
    const std::string number = it->path().filename();
    pid_t tid = -1;
    if (std::from_chars(number.data(), number.data() + number.size(), tid).ec != std::errc{}) continue;
    SchedAttributes attributes;
    attributes.nice = kGpuThreadNice;
    (void)::syscall(SYS_sched_setattr, tid, &attributes, 0);
    ++found;
  }
  return found;
}

}  // namespace vgpud
