// SPDX-License-Identifier: Apache-2.0
// What a VF needs from its daemon. Outlives all VFs.
#pragma once

#include <sched.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_budget.h"
#include "base/event_loop.h"
#include "vgpud/device/gpu_choice.h"
#include "vgpud/events/chronicle.h"
#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/host/cgroup_tree.h"
#include "vgpud/host/child_log.h"
#include "vgpud/host/confinement.h"
#include "vgpud/host/worker.h"
#include "vgpud/keep/keeper.h"
#include "vgpud/model/vf_memory.h"

namespace vgpud::daemon {

struct VfSurroundings {
  EventLoop& loop;
  GpuThread& gpu;
  std::string gpu_name;
  std::string runtime_dir;
  const GpuChoice& choice;
  uint32_t soft_gpu_threads;
  std::string soft_gpu_capability;
  VfMemory most_memory;  // that a VF may grow to
  std::string vf_program;
  std::string exec_program;
  VfConfinement confinement;
  EventBudgets event_budgets;
  bool client_memory;
  const CgroupTree& cgroups;
  Worker& mover;                                         // puts processes into groups
  Keeper* keeper;                                        // null: VFs end with this process
  std::shared_ptr<Chronicle> chronicle;                  // threads of logs hold it, too
  std::function<void(const std::string& vf)> on_failed;  // one that served
  std::function<void()> on_turnout;                      // a VF has joined or left those who share the GPU
  std::optional<cpu_set_t> processors = {};              // near the GPU, for its processes; none: all
  std::shared_ptr<LogBudget> logs = std::make_shared<LogBudget>();
};

}  // namespace vgpud::daemon
