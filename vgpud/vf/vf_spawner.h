// SPDX-License-Identifier: Apache-2.0
// Starts the processes of one VF: confined as the VF's own user, in its control group, with their stderr in our log.
// Main thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "vgpud/host/child.h"
#include "vgpud/host/child_log.h"
#include "vgpud/host/vf_cgroup.h"
#include "vgpud/model/vf_spec.h"
#include "vgpud/vf/vf_surroundings.h"

namespace vgpud::daemon {

class VfSpawner {
 public:
  // `around` outlives this.
  VfSpawner(const VfSurroundings& around, VfId id, const VfSpec& spec);

  struct Spawned {
    Child child;
    UniqueFd log;  // a copy of the reading end of its stderr, where somebody keeps it
  };
  [[nodiscard]] Result<Spawned> Spawn(Child::Spec spec);
  // Goes on with one that an earlier vgpud has started; it may not have come into its group yet.
  [[nodiscard]] Result<void> Adopt(const Child& child, UniqueFd log);
  // It has ended: the last that it wrote is taken.
  void Ended(pid_t pid) { log_.Ended(pid); }

  VfCgroup& cgroup() { return cgroup_; }
  const VfCgroup& cgroup() const { return cgroup_; }
  uint64_t log_lines_dropped() const { return log_.dropped(); }
  // As many threads as an executor may have, where processes have a user of their own.
  std::vector<std::string> LimitArguments(const VfSpec& spec) const;

 private:
  Result<void> MoveIntoGroup(const Child& child);

  const VfSurroundings& around_;
  const VfId id_;
  const std::string name_;
  ChildLog log_;
  VfCgroup cgroup_;
};

}  // namespace vgpud::daemon
