// SPDX-License-Identifier: Apache-2.0
// The control group of one VF: what all its processes together may take of the host. Main thread; MoverOf's result any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "vgpud/host/cgroup_tree.h"

namespace vgpud::daemon {

class VfCgroup {
 public:
  struct Limits {
    uint64_t pids = 0;          // threads of all its processes
    uint64_t memory_bytes = 0;  // of all its processes, page cache included
    uint32_t cpus = 0;          // that it may use up, on average over 100 ms
  };
  // For a VF with so much VRAM (which the soft GPU takes from the host's memory) whose executors compute with so many
  // threads: one processor more than they have for what is not the kernel itself, 64 MiB per process beside the quotas.
  static Limits LimitsFor(uint64_t vram_bytes, uint64_t host_memory_bytes, uint32_t threads);

  // What the processes may take together from now on, as LimitsFor says it.
  void LimitMemory(uint64_t bytes);

  // Else nothing does.
  bool limits_memory() const { return !tree_.parent(CgroupController::kMemory).empty(); }

  // More threads than an executor that computes with so many ever has.
  static constexpr uint64_t ThreadsOf(uint32_t threads) { return uint64_t{threads} + 16; }

  // `tree` outlives this. What it lacks is not limited; what cannot be set is in problem().
  VfCgroup(const CgroupTree& tree, const std::string& vf, const Limits& limits);
  // Removes the group where no process is left in it.
  ~VfCgroup();
  VfCgroup(const VfCgroup&) = delete;
  VfCgroup& operator=(const VfCgroup&) = delete;

  // Moves a process into the group, with all it starts from then on. The kernel may take some 20 ms for it, so it is
  // for another thread than one that serves. The error names the file.
  std::function<Result<void>(pid_t)> Mover() const;
  // What it does weighs next to nothing beside other VFs, or as much as theirs (the default). It takes what they leave;
  // with cpu.idle (Linux 5.15), the moment that they want it.
  void SetGivesWay(bool gives_way);
  // Else that does nothing.
  bool limits_cpu() const { return !tree_.parent(CgroupController::kCpu).empty(); }
  // Of all processes that ever were in it; nullopt: not counted here.
  std::optional<Ns> CpuTime() const;
  const std::string& problem() const { return problem_; }

 private:
  std::string Dir(CgroupController controller) const;
  void Set(CgroupController controller, const char* file, const std::string& text);
  // Where the kernel has such a file.
  void SetIfThere(CgroupController controller, const char* file, const std::string& text);

  const CgroupTree& tree_;
  const std::string name_;
  std::string problem_;
  mutable UniqueFd cpu_time_;  // read ten times a second
};

}  // namespace vgpud::daemon
