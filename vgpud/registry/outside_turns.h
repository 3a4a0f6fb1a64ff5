// SPDX-License-Identifier: Apache-2.0
// Holds VFs to what they may compute outside of their turns: looks at all of them ten times a second while one
// computes, twice while all are at rest. Main thread.
#pragma once

#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "vgpud/host/cgroup_tree.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {

class OutsideTurns {
 public:
  // All outlive this. `percent`: of the host's processors, for all VFs together.
  OutsideTurns(EventLoop& loop, const ServedGpus& gpus, const VfRegistry& vfs, CgroupTree& cgroups, double percent);
  // There is one more VF: the looks begin with the first one, and end with the last.
  void Begin();

 private:
  void Look();
  void Charge(const std::vector<VfId>& ids, TimePoint now, const std::vector<VfAccount>& accounts);

  const ServedGpus& gpus_;
  const VfRegistry& vfs_;
  CgroupTree& cgroups_;
  const double percent_;
  EventLoop::WatchPtr timer_;
};

}  // namespace vgpud::daemon
