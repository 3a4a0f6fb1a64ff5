// SPDX-License-Identifier: Apache-2.0
// Changes to VFs and GPUs that are there: checked together, and then all of them in force at one turn boundary of each
// GPU, or none. Main thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "vgpud/events/chronicle.h"
#include "vgpud/registry/memory_change.h"
#include "vgpud/registry/reply.h"
#include "vgpud/registry/reports.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_limits.h"
#include "vgpud/registry/vf_registry.h"
#include "vgpud/registry/vf_store.h"

namespace vgpud::daemon {

class Changes {
 public:
  // All outlive this.
  Changes(const ServedGpus& gpus, const VfRegistry& vfs, VfStore& store, const VfLimits& limits, const Reports& reports,
          const Chronicle& chronicle)
      : gpus_(gpus), vfs_(vfs), store_(store), limits_(limits), reports_(reports), chronicle_(chronicle) {}

  // Whose change it is.
  struct Order {
    std::string by;        // for the chronicle: "user 1000"
    bool dry_run = false;  // answers what would change, and changes nothing
  };
  // Answers when all of `patch` is in force and on the disk.
  void Make(const SettingsPatch& patch, const Order& order, Reply<ChangeReport> done);
  // The same, and answers with the VF or the GPU as well.
  void MakeOfVf(const std::string& name, const VfPatch& patch, const Order& order, Reply<ChangeReport> done);
  void MakeOfGpu(const std::string& name, const GpuPatch& patch, const Order& order, Reply<ChangeReport> done);
  // Whose VF it is from now on; an empty one: nobody's.
  ApiResult<VfReport> SetDomain(const std::string& name, const VfDomain& domain, const std::string& by);
  // Calls `changed` whenever the settings of a GPU have changed, before that is answered.
  void OnGpuSettings(std::function<void()> changed) { gpu_settings_changed_ = std::move(changed); }

 private:
  struct ChangedVf {
    std::shared_ptr<Vf> vf;
    VfView view;  // its new knobs
    VfMemory memory;
  };
  // The part of a change that is about one GPU.
  struct Part {
    ServedGpu* gpu = nullptr;
    SettingsPatch patch;
    Settings after;
    std::vector<ChangedVf> vfs;
    Difference difference;
    std::vector<std::string> warnings;
  };
  using Plan = std::vector<Part>;  // in the order of the GPUs
  static ChangeReport ReportOf(const Plan& plan);
  // What is to be done, if it may be.
  ApiResult<Plan> MakePlan(const SettingsPatch& patch) const;
  ApiResult<Plan> SplitByGpu(const SettingsPatch& patch) const;
  ApiResult<void> Apply(Part* part) const;
  ApiResult<void> CheckLimits(const Plan& plan) const;
  // Do programs leave as much?
  static ApiResult<void> CheckUse(const Plan& plan);
  // Is there VRAM for it on the GPU?
  ApiResult<void> CheckMemory(const Part& part) const;
  // `memory`: of its VFs, after MemoryChange::Shrink; null: all stays as it is.
  void Carry(Plan& plan, std::shared_ptr<MemoryChange> memory, const std::string& by, Reply<ChangeReport> done);
  // An event for each VF and GPU in it.
  void Tell(const Plan& plan, const std::string& by) const;
  // Settles what the main thread keeps; returns the rest, for the scheduler thread.
  GpuThread::Change Settle(Part& part);

  const ServedGpus& gpus_;
  const VfRegistry& vfs_;
  VfStore& store_;
  const VfLimits& limits_;
  const Reports& reports_;
  const Chronicle& chronicle_;
  std::function<void()> gpu_settings_changed_ = [] {};
  std::set<VfId> resizing_;
};

}  // namespace vgpud::daemon
