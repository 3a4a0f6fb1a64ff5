// SPDX-License-Identifier: Apache-2.0
// What VFs and the GPU are and did, for those who ask.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {

Protections VfRegistry::ListProtections() const {
  Protections all = ProtectionsOf(around_.confinement);
  for (Protection& row : around_.cgroups.Describe()) all.push_back(std::move(row));
  const auto& gpus = around_.config.gpus;
  const auto cuda = std::find_if(gpus.begin(), gpus.end(), [](const GpuConfig& each) { return each.gpu.is_cuda(); });
  if (cuda != gpus.end())
    all.push_back({"own-gpu-driver", false,
                   cuda->gpu.cuda_channel.empty()
                       ? "executors load NVIDIA's driver: they may open and control its devices, and nobody watches "
                         "what they map (docs/security.md)"
                       : "executors get the files of their guest's memory, to pass them on, and nobody watches what "
                         "they map of them (docs/cuda-backend.md)"});
  return all;
}

std::string VfRegistry::Summary() const {
  std::string gpus;
  for (const auto& gpu : gpus_) gpus += (gpus.empty() ? "" : ", ") + gpu->name();
  return fmt::format("{}: {} VF{}{}", gpus, vfs_.size(), vfs_.size() == 1 ? "" : "s",
                     lost_.empty() ? "" : fmt::format(", {} lost (vgpuctl list says why)", lost_.size()));
}

void VfRegistry::AskSchedulers(const std::function<void()>& done) {
  const auto left = std::make_shared<size_t>(gpus_.size());
  for (const auto& gpu : gpus_)
    gpu->thread().ReadAccounts({}, [left, done](TimePoint, const std::vector<VfAccount>&) {
      if (--*left == 0) done();
    });
}

ApiResult<VfReport> VfRegistry::ShowVf(const std::string& name) const {
  const auto vf = Find(name);
  if (vf != nullptr) return vf->Report();
  if (lost_.contains(name)) return ReportLost(name);
  return NoSuchVf(name);
}

std::vector<VfReport> VfRegistry::ListVfs() const {
  std::vector<VfReport> reports;
  for (const auto& [id, vf] : vfs_) reports.push_back(vf->Report());
  for (const auto& [name, lost] : lost_) reports.push_back(ReportLost(name));
  return reports;
}

void VfRegistry::ReadStats(const std::string& name, const std::string& only, Reply<std::vector<StatsReport>> done) {
  std::vector<ServedGpu*> asked;
  if (const auto vf = name.empty() ? nullptr : Find(name); vf != nullptr) {
    asked.push_back(&GpuOf(*vf));
  } else if (!name.empty()) {
    return done(NoSuchVf(name));
  } else if (!only.empty()) {
    const auto gpu = FindGpu(only);
    if (!gpu) return done(tl::unexpected(gpu.error()));
    asked.push_back(*gpu);
  } else {
    for (const auto& gpu : gpus_) asked.push_back(gpu.get());
  }
  const auto reports = std::make_shared<std::vector<StatsReport>>(asked.size());
  const auto left = std::make_shared<size_t>(asked.size());
  for (size_t i = 0; i < asked.size(); ++i)
    ReadStatsOf(*asked[i], name, [reports, left, done, i](StatsReport report) {
      (*reports)[i] = std::move(report);
      if (--*left == 0) done(std::move(*reports));
    });
}

void VfRegistry::ReadStatsOf(ServedGpu& gpu, const std::string& name, std::function<void(StatsReport)> done) {
  std::vector<VfId> ids;
  std::vector<VfStatsReport> reports;
  for (const VfId id : IdsOn(gpu)) {
    const Vf& vf = *vfs_.at(id);
    if (!name.empty() && vf.spec().name != name) continue;
    ids.push_back(id);
    reports.push_back({vf.Report(), {}, 0});
  }
  gpu.thread().ReadStats(ids, [this, &gpu, done, ids, reports = std::move(reports)](GpuStats stats) mutable {
    for (size_t i = 0; i < reports.size(); ++i) {
      // Of this life of the VF alone, as its processors are; in its turns all GPU threads may compute.
      const uint64_t in_turns = stats.vfs[i].account.received_ns * reports[i].vf.gpu_threads;
      reports[i].cpu_outside_turns_ns = reports[i].vf.cpu_ns - std::min(reports[i].vf.cpu_ns, in_turns);
    }
    const Telemetry& telemetry = gpu.telemetry();
    telemetry.AddPast(ids, &stats);
    StatsReport all{.gpu = stats,
                    .vfs = reports,
                    .keys = {},
                    .windows = telemetry.Fairness(),
                    .history = telemetry.history_state(),
                    .traced_turns = gpu.thread().trace().appended(),
                    .trace_capacity = gpu.thread().trace().capacity(),
                    .protections = ListProtections(),
                    .gpu_name = gpu.name(),
                    .rungs = gpu.rungs()};
    for (size_t i = 0; i < all.vfs.size(); ++i) {
      all.vfs[i].stats = stats.vfs[i];
      all.keys.push_back(telemetry.KeyOf(ids[i]));
    }
    done(all);
  });
}

void VfRegistry::RefreshHistories(const std::function<void()>& done) {
  const auto left = std::make_shared<size_t>(gpus_.size());
  for (const auto& gpu : gpus_)
    gpu->telemetry().Refresh([left, done] {
      if (--*left == 0) done();
    });
}

void VfRegistry::DescribeGpu(ServedGpu& gpu, Reply<GpuReport> done) {
  gpu.thread().ReadStats({}, [this, &gpu, done](const GpuStats&) { done(ReportGpu(gpu)); });
}

GpuReport VfRegistry::ReportGpu(const ServedGpu& gpu) const { return gpu.Report(RoomOn(gpu), ListProtections()); }

std::vector<GpuReport> VfRegistry::ListGpus() const {
  std::vector<GpuReport> reports;
  for (const auto& gpu : gpus_) reports.push_back(ReportGpu(*gpu));
  return reports;
}

}  // namespace vgpud::daemon
