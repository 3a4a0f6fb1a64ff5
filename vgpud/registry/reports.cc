// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/jail/landlock.h"
#include "vgpud/host/when_all.h"

namespace vgpud::daemon {

Protections Reports::OfProtections() const {
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
  if (cuda != gpus.end()) {
    const bool own_root = around_.confinement.kind <= Confinement::kNamespaces;
    all.push_back({"driver-files", own_root || HasLandlock(),
                   own_root || HasLandlock()
                       ? ""
                       : "this host gives neither namespaces nor Landlock: an executor that has been taken over may "
                         "open every file of its user (docs/cuda-backend.md)"});
    const auto open = std::find_if(gpus.begin(), gpus.end(), [](const GpuConfig& each) {
      return each.facts && each.facts->host_memory == "open";
    });
    all.push_back({"host-memory-apart", open == gpus.end(),
                   open == gpus.end() ? ""
                                      : "the GPU reaches all memory of a process that uses it: a guest's kernels can "
                                        "read and write their executor's (docs/cuda-backend.md)"});
  }
  return all;
}

std::string Reports::Summary() const {
  const size_t vfs = vfs_.all().size(), lost = vfs_.lost().size();
  return fmt::format("{}: {} VF{}{}", gpus_.names_text(), vfs, vfs == 1 ? "" : "s",
                     lost == 0 ? "" : fmt::format(", {} lost (vgpuctl list says why)", lost));
}

VfReport Reports::Of(const Vf& vf) const {
  VfReport report = vf.Report();
  const Telemetry& telemetry = gpus_.Of(vf).telemetry();
  report.utilization = telemetry.last_second().Of(telemetry.KeyOf(vf.id())).utilization();
  return report;
}

ApiResult<VfReport> Reports::OfVf(const std::string& name) const {
  if (vfs_.Find(name) == nullptr && vfs_.lost().Find(name) != nullptr) return vfs_.lost().Report(name);
  return Of(*TRY(vfs_.Get(name)));
}

std::vector<VfReport> Reports::OfVfs() const {
  std::vector<VfReport> reports;
  for (const auto& [id, vf] : vfs_.all()) reports.push_back(Of(*vf));
  for (VfReport& lost : vfs_.lost().Reports()) reports.push_back(std::move(lost));
  return reports;
}

ApiResult<std::vector<ProcessReport>> Reports::OfProcesses(const std::string& name) const {
  if (!name.empty()) return TRY(vfs_.Get(name))->Processes();
  std::vector<ProcessReport> all;
  for (const auto& [id, vf] : vfs_.all())
    for (ProcessReport& process : vf->Processes()) all.push_back(std::move(process));
  return all;
}

void Reports::ReadStats(const std::string& name, const std::string& only, Reply<std::vector<StatsReport>> done) const {
  struct Part {
    ServedGpu* gpu;
    Vfs vfs;
  };
  std::vector<Part> parts;
  if (!name.empty()) {
    const auto vf = vfs_.Get(name);
    if (!vf) return done(tl::unexpected(vf.error()));
    parts.push_back({&gpus_.Of(**vf), {*vf}});
  } else if (!only.empty()) {
    const auto gpu = gpus_.Find(only);
    if (!gpu) return done(tl::unexpected(gpu.error()));
    parts.push_back({*gpu, vfs_.On(**gpu)});
  } else {
    for (const auto& gpu : gpus_.all()) parts.push_back({gpu.get(), vfs_.On(*gpu)});
  }
  const auto reports = std::make_shared<std::vector<StatsReport>>(parts.size());
  const auto read = WhenAll(parts.size(), [reports, done = std::move(done)] { done(std::move(*reports)); });
  for (size_t i = 0; i < parts.size(); ++i)
    ReadStatsOf(*parts[i].gpu, parts[i].vfs, [reports, read, i](StatsReport report) {
      (*reports)[i] = std::move(report);
      read();
    });
}

void Reports::ReadStatsOf(ServedGpu& gpu, const Vfs& vfs, std::function<void(StatsReport)> done) const {
  std::vector<VfId> ids;
  std::vector<VfStatsReport> reports;
  for (const auto& vf : vfs) {
    ids.push_back(vf->id());
    reports.push_back({vf->Report(), {}, 0});
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
                    .recent = telemetry.last_second().OfGpu(),
                    .history = telemetry.history_state(),
                    .traced_turns = gpu.thread().trace().appended(),
                    .trace_capacity = gpu.thread().trace().capacity(),
                    .about = OfGpu(gpu)};
    for (size_t i = 0; i < all.vfs.size(); ++i) {
      all.vfs[i].stats = stats.vfs[i];
      all.vfs[i].vf.kernel_faults = stats.vfs[i].work.faults;
      all.keys.push_back(telemetry.KeyOf(ids[i]));
      all.vfs[i].recent = telemetry.last_second().Of(all.keys[i]);
      all.vfs[i].vf.utilization = all.vfs[i].recent.utilization();
    }
    done(all);
  });
}

void Reports::AskGpu(ServedGpu& gpu, Reply<GpuReport> done) const {
  gpu.thread().ReadStats({}, [this, &gpu, done = std::move(done)](const GpuStats&) { done(OfGpu(gpu)); });
}

GpuReport Reports::OfGpu(const ServedGpu& gpu) const { return gpu.Report(vfs_.RoomOn(gpu), OfProtections()); }

std::vector<GpuReport> Reports::OfGpus() const {
  std::vector<GpuReport> reports;
  for (const auto& gpu : gpus_.all()) reports.push_back(OfGpu(*gpu));
  return reports;
}

}  // namespace vgpud::daemon
