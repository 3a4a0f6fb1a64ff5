// SPDX-License-Identifier: Apache-2.0
// What VFs and GPUs are and did, for those who ask. Changes nothing. Main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vgpud/model/report.h"
#include "vgpud/model/stats_report.h"
#include "vgpud/registry/reply.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {

class Reports {
 public:
  // All outlive this.
  Reports(const DaemonParts& around, const ServedGpus& gpus, const VfRegistry& vfs)
      : around_(around), gpus_(gpus), vfs_(vfs) {}

  // Those that are there, and those that are lost.
  ApiResult<VfReport> OfVf(const std::string& name) const;
  std::vector<VfReport> OfVfs() const;
  // The programs that use the VF of that name, else any VF.
  ApiResult<std::vector<ProcessReport>> OfProcesses(const std::string& vf) const;
  GpuReport OfGpu(const ServedGpu& gpu) const;
  std::vector<GpuReport> OfGpus() const;
  // As its scheduler thread has it when it has done all that it was told before.
  void AskGpu(ServedGpu& gpu, Reply<GpuReport> done) const;
  // Reads the statistics of the VF of that name, else of all VFs on `gpu`, else of all. A report for each GPU.
  void ReadStats(const std::string& vf, const std::string& gpu, Reply<std::vector<StatsReport>> done) const;
  // What this host's hardware is; null: it was not looked at.
  const Topology* topology() const { return around_.topology; }
  // What keeps guests from the host and from each other here, in force or not.
  Protections OfProtections() const;
  // One line on all of it, for who looks at the service.
  std::string Summary() const;

 private:
  using Vfs = std::vector<std::shared_ptr<Vf>>;
  VfReport Of(const Vf& vf) const;
  void ReadStatsOf(ServedGpu& gpu, const Vfs& vfs, std::function<void(StatsReport)> done) const;

  const DaemonParts around_;
  const ServedGpus& gpus_;
  const VfRegistry& vfs_;
};

}  // namespace vgpud::daemon
