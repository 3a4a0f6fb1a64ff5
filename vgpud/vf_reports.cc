// SPDX-License-Identifier: Apache-2.0
// What VFs and the GPU are and did, for those who ask.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "vgpud/vf_registry.h"

namespace vgpud::daemon {

Protections VfRegistry::ListProtections() const {
  Protections all = ProtectionsOf(around_.confinement);
  for (Protection& row : around_.cgroups.Describe()) all.push_back(std::move(row));
  bool cuda = false, foreign = false;
  for (const GpuConfig& config : around_.config.gpus) {
    cuda |= config.gpu.is_cuda();
    foreign |= config.gpu.is_cuda() && config.gpu.cuda_channel.empty();
  }
  if (cuda)
    all.push_back({"own-gpu-driver", !foreign,
                   foreign
                       ? "executors load NVIDIA's driver: they may open and control its devices, and nobody watches "
                         "what they map (docs/security.md)"
                       : ""});
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

void VfRegistry::ReadStats(const std::string& name, Reply<StatsReport> done) {
  ServedGpu& gpu = First();
  std::vector<VfId> ids;
  std::vector<VfStatsReport> reports;
  for (const VfId id : IdsOn(gpu)) {
    const Vf& vf = *vfs_.at(id);
    if (!name.empty() && vf.spec().name != name) continue;
    ids.push_back(id);
    reports.push_back({vf.Report(), {}, 0});
  }
  if (!name.empty() && ids.empty()) return done(NoSuchVf(name));
  gpu.thread().ReadStats(ids, [this, &gpu, done, ids, reports = std::move(reports)](GpuThread::Stats stats) mutable {
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
                    .protections = ListProtections()};
    for (size_t i = 0; i < all.vfs.size(); ++i) {
      all.vfs[i].stats = stats.vfs[i];
      all.keys.push_back(telemetry.KeyOf(ids[i]));
    }
    done(all);
  });
}

void VfRegistry::ReadReport(const std::string& day, Reply<std::vector<History::Day>> done) {
  First().telemetry().Report(day, [done](HistoryKeeper::Days days) {
    days ? done(std::move(*days)) : done(ApiFail(ErrorKind::kUnavailable, days.error().context));
  });
}

void VfRegistry::ReadDay(const std::string& day, Reply<std::vector<History::Day>> done) {
  First().telemetry().ReadDay(day, [done](HistoryKeeper::Days days) {
    days ? done(std::move(*days)) : done(ApiFail(ErrorKind::kUnavailable, days.error().context));
  });
}

void VfRegistry::DescribeGpu(Reply<GpuReport> done) {
  ServedGpu& gpu = First();
  gpu.thread().ReadStats({}, [this, &gpu, done](const GpuThread::Stats&) { done(ReportGpu(gpu)); });
}

GpuReport VfRegistry::ReportGpu(const ServedGpu& gpu) const {
  return gpu.Report(static_cast<uint32_t>(IdsOn(gpu).size()), ListProtections());
}

}  // namespace vgpud::daemon
