// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/vf_cgroup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/slice_page.h"
#include "vgpud/host/cgroup_file.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kOwnBytes = uint64_t{64} << 20;  // of a process, beside the VF's quotas
constexpr uint64_t kPeriodUs = 100'000;
constexpr CgroupController kAll[] = {CgroupController::kCpu, CgroupController::kCpuAccount, CgroupController::kMemory,
                                     CgroupController::kPids};

}  // namespace

VfCgroup::Limits VfCgroup::LimitsFor(uint64_t vram_bytes, uint64_t host_memory_bytes, uint32_t threads) {
  // Twice as many executors as channels: while the first half exits, the second begins.
  constexpr uint64_t kProcesses = 2 * kMaxExecutors + 1;
  // Of an executor beside those that compute (gpu/exec/guard.cc), and all that a vgpud-vf ever has.
  constexpr uint64_t kOtherThreads = 4, kServerThreads = 128;
  return {.pids = kProcesses * (threads + kOtherThreads) + kServerThreads,
          .memory_bytes = vram_bytes + host_memory_bytes + kProcesses * kOwnBytes,
          .cpus = threads + 1};
}

VfCgroup::VfCgroup(const CgroupTree& tree, const std::string& vf, const Limits& limits) : tree_(tree), name_(vf) {
  for (const CgroupController controller : kAll) {
    const std::string dir = Dir(controller);
    if (!dir.empty() && ::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST)
      problem_ = fmt::format("cannot make {}: errno {}", dir, errno);
  }
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const bool bounded = online > 0 && limits.cpus < static_cast<uint64_t>(online);
  LimitMemory(limits.memory_bytes);
  Set(CgroupController::kPids, "pids.max", fmt::format("{}", limits.pids));
  if (tree.version() == 2) {
    // Who runs out of memory loses the process with the highest score, an executor, and not the VF.
    Set(CgroupController::kMemory, "memory.oom.group", "0");
    SetIfThere(CgroupController::kMemory, "memory.swap.max", "0");
    if (bounded) Set(CgroupController::kCpu, "cpu.max", fmt::format("{} {}", limits.cpus * kPeriodUs, kPeriodUs));
  } else {
    if (bounded) {
      Set(CgroupController::kCpu, "cpu.cfs_period_us", fmt::format("{}", kPeriodUs));
      Set(CgroupController::kCpu, "cpu.cfs_quota_us", fmt::format("{}", limits.cpus * kPeriodUs));
    }
  }
}

void VfCgroup::LimitMemory(uint64_t bytes) {
  const std::string text = fmt::format("{}", bytes);
  if (tree_.version() == 2) return Set(CgroupController::kMemory, "memory.max", text);
  // Of version 1: with swap it is never less than without, which refuses the first one when both grow.
  constexpr const char* kMemory = "memory.limit_in_bytes";
  const std::string dir = Dir(CgroupController::kMemory);
  const bool done = dir.empty() || WriteCgroupFile(fmt::format("{}/{}", dir, kMemory), text);
  SetIfThere(CgroupController::kMemory, "memory.memsw.limit_in_bytes", text);
  if (!done) Set(CgroupController::kMemory, kMemory, text);
}

VfCgroup::~VfCgroup() {
  for (const CgroupController controller : kAll)
    if (const std::string dir = Dir(controller); !dir.empty()) ::rmdir(dir.c_str());
}

std::string VfCgroup::Dir(CgroupController controller) const {
  const std::string& parent = tree_.parent(controller);
  return parent.empty() ? parent : parent + "/" + name_;
}

void VfCgroup::Set(CgroupController controller, const char* file, const std::string& text) {
  const std::string dir = Dir(controller);
  if (dir.empty()) return;
  if (const auto set = WriteCgroupFile(dir + "/" + file, text); !set) problem_ = set.error().context;
}

void VfCgroup::SetIfThere(CgroupController controller, const char* file, const std::string& text) {
  if (const std::string dir = Dir(controller); !dir.empty() && ::access((dir + "/" + file).c_str(), F_OK) == 0)
    Set(controller, file, text);
}

std::function<Result<void>(pid_t)> VfCgroup::Mover() const {
  std::vector<std::string> files;
  for (const CgroupController controller : kAll)
    if (const std::string dir = Dir(controller); !dir.empty()) files.push_back(dir + "/cgroup.procs");
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());  // one for all in version 2
  return [files](pid_t pid) -> Result<void> {
    for (const std::string& file : files) TRY(WriteCgroupFile(file, fmt::format("{}", pid)));
    return {};
  };
}

void VfCgroup::SetGivesWay(bool gives_way) {
  // An idle group takes no weight.
  if (!gives_way) SetIfThere(CgroupController::kCpu, "cpu.idle", "0");
  if (tree_.version() == 2)
    Set(CgroupController::kCpu, "cpu.weight", gives_way ? "1" : "100");
  else
    Set(CgroupController::kCpu, "cpu.shares", gives_way ? "2" : "1024");
  if (gives_way) SetIfThere(CgroupController::kCpu, "cpu.idle", "1");
}

std::optional<Ns> VfCgroup::CpuTime() const {
  const bool two = tree_.version() == 2;
  if (!cpu_time_) {
    const std::string dir = Dir(CgroupController::kCpuAccount);
    if (dir.empty()) return std::nullopt;
    const std::string path = dir + (two ? "/cpu.stat" : "/cpuacct.usage");
    cpu_time_ = UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  }
  const auto value = ReadCgroupNumber(cpu_time_.get(), two ? "usage_usec" : "");
  if (!value) {
    cpu_time_.Reset();  // that group is gone
    return std::nullopt;
  }
  return Ns{static_cast<int64_t>(*value) * (two ? 1000 : 1)};
}

}  // namespace vgpud::daemon
