// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/event_budget.h"
#include "vgpud/control/prometheus_text.h"
#include "vgpud/control/report_statistics.h"
#include "vgpud/model/version.h"

namespace vgpud::daemon {
namespace {

struct GpuCounter {
  std::string_view name;
  std::string_view help;
  uint64_t (*get)(const StatsReport&);
  bool ns;
};
constexpr GpuCounter kGpuCounters[] = {
    {"vgpud_gpu_run_seconds_total", "Time in which a VF had the GPU.",
     [](const StatsReport& s) { return s.gpu.run_ns; }, true},
    {"vgpud_gpu_switch_seconds_total", "Time lost between one VF and the next.",
     [](const StatsReport& s) { return s.gpu.switch_ns; }, true},
    {"vgpud_gpu_idle_seconds_total", "Time in which nobody wanted, or was allowed to have, the GPU.",
     [](const StatsReport& s) { return s.gpu.idle_ns; }, true},
    {"vgpud_gpu_stall_seconds_total", "Time in which a VF was to leave the GPU and the host gave it no CPU for that.",
     [](const StatsReport& s) { return s.gpu.stall_ns; }, true},
    {"vgpud_gpu_rounds_total", "Rounds of the rotation since vgpud was started.",
     [](const StatsReport& s) { return s.gpu.round; }, false},
    {"vgpud_gpu_impossible_events_total", "Events that the world switch had no rule for, since vgpud was started.",
     [](const StatsReport& s) { return s.gpu.impossible_events; }, false},
    {"vgpud_trace_turns_total", "Turns recorded in the trace since vgpud was started.",
     [](const StatsReport& s) { return s.traced_turns; }, false},
};

void PutValue(PrometheusText& out, const PrometheusText::Labels& labels, uint64_t value, bool ns) {
  ns ? out.Seconds(labels, value) : out.Sample(labels, value);
}

// What the families are made from. Each sample of a GPU says whose it is, also where there is one only: another one
// does not change the series of the first.
class Gpus {
 public:
  explicit Gpus(const std::vector<StatsReport>& all) : all_(all) {}
  const std::vector<StatsReport>& all() const { return all_; }
  PrometheusText::Labels Of(const StatsReport& gpu, PrometheusText::Labels more = {}) const {
    more.insert(more.begin(), {"gpu", gpu.about.name});
    return more;
  }
  // Calls f(gpu, index of the VF, label of the VF).
  template <class F>
  void EachVf(F f) const {
    for (const StatsReport& gpu : all_)
      for (size_t i = 0; i < gpu.vfs.size(); ++i) f(gpu, i, Of(gpu, {{"vf", gpu.vfs[i].vf.name}}));
  }

 private:
  const std::vector<StatsReport>& all_;
};

PrometheusText::Labels With(PrometheusText::Labels labels, std::string_view name, std::string_view value) {
  labels.emplace_back(name, value);
  return labels;
}

// Kinds, and memory where the GPU has a limit.
void PutInfo(PrometheusText& out, const Gpus& gpus) {
  out.Family("vgpud_build_info", "gauge", "1; its label says which vgpud it is.");
  out.Sample({{"version", Version()}}, uint64_t{1});
  out.Family("vgpud_gpu_info", "gauge", "1; its labels say what the GPU is, and by which policy it is shared.");
  for (const StatsReport& gpu : gpus.all())
    out.Sample(gpus.Of(gpu, {{"kind", gpu.about.kind},
                             {"policy", gpu.about.settings.policy},
                             {"compute_capability", gpu.about.capability}}),
               uint64_t{1});
  out.Family("vgpud_gpu_vram_bytes", "gauge", "Memory that all VFs of the GPU have together; absent: as they like.");
  for (const StatsReport& gpu : gpus.all())
    if (gpu.about.vram_bytes != 0) out.Sample(gpus.Of(gpu), gpu.about.vram_bytes);
}

void PutKernelFaults(PrometheusText& out, const Gpus& gpus) {
  out.Family(
      "vgpud_vf_kernel_faults_total", "counter",
      "Kernels that failed, by the CUDA error that their program saw, as the VF's executors say, since vgpud was "
      "started.");
  gpus.EachVf([&](const StatsReport& gpu, size_t i, const auto& labels) {
    for (size_t row = 0; row < std::size(kKernelErrors); ++row)
      out.Sample(With(labels, "error", kKernelErrors[row].label), gpu.vfs[i].stats.work.faults.of(row));
  });
}

void PutFairness(PrometheusText& out, const Gpus& gpus) {
  out.Family("vgpud_gpu_jain_index", "gauge",
             "Jain's fairness index of received over entitled time, of the VFs that had work all through the window.");
  for (const StatsReport& gpu : gpus.all())
    for (const auto& window : gpu.windows)
      if (window.figures.jain) out.Sample(gpus.Of(gpu, {{"window", window.name}}), *window.figures.jain);
  out.Family("vgpud_vf_share_error", "gauge",
             "Part of the GPU received minus part entitled to, among the VFs that had work all through the window.");
  gpus.EachVf([&](const StatsReport& gpu, size_t i, const auto& labels) {
    for (const auto& window : gpu.windows)
      if (const SharePart* part = window.figures.Of(gpu.keys[i]))
        out.Sample(With(labels, "window", window.name), part->error());
  });
}

void PutGuestEvents(PrometheusText& out, const Gpus& gpus) {
  struct Family {
    std::string_view name;
    std::string_view help;
    uint64_t (*get)(const vf_link::Events&, size_t);
  };
  static constexpr Family kFamilies[] = {
      {"vgpud_vf_guest_events_total", "Events that the VF's guest caused.",
       [](const vf_link::Events& e, size_t i) { return uint64_t{e.count[i]}; }},
      {"vgpud_vf_guest_events_throttled_total", "How often the guest was made to wait because too many of them came.",
       [](const vf_link::Events& e, size_t i) { return uint64_t{e.throttled[i]}; }},
  };
  for (const Family& family : kFamilies) {
    out.Family(family.name, "counter", family.help);
    gpus.EachVf([&](const StatsReport& gpu, size_t i, const auto& labels) {
      for (size_t e = 0; e < kGuardedEvents; ++e)
        out.Sample(With(labels, "event", kEventNames[e]), family.get(gpu.vfs[i].vf.events, e));
    });
  }
}

struct GpuHistogram {
  std::string_view name;
  std::string_view help;
  const LatencyHistogram& (*get)(const StatsReport&);
};
constexpr GpuHistogram kGpuHistograms[] = {
    {"vgpud_gpu_switch_duration_seconds", "From taking the GPU back until the next VF runs.",
     [](const StatsReport& s) -> const LatencyHistogram& { return s.gpu.switches; }},
    {"vgpud_gpu_slice_end_late_seconds",
     "From the end of each slice that was used up until the GPU was taken back, since vgpud was started.",
     [](const StatsReport& s) -> const LatencyHistogram& { return s.gpu.slice_ends; }},
    {"vgpud_scheduler_wake_late_seconds",
     "How late the timed waits of the scheduler thread returned, since vgpud was started.",
     [](const StatsReport& s) -> const LatencyHistogram& { return s.gpu.wake_ups; }},
};

struct GpuGauge {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  uint64_t (*get)(const StatsReport&);
};
constexpr GpuGauge kGpuGauges[] = {
    {"vgpud_gpu_vfs", "gauge", "VFs there are.", [](const StatsReport& s) { return uint64_t{s.vfs.size()}; }},
    {"vgpud_gpu_vram_promised_bytes", "gauge", "Memory that the VFs of the GPU may use together.",
     [](const StatsReport& s) { return s.about.vram_promised_bytes; }},
    {"vgpud_gpu_vram_used_bytes", "gauge", "Memory that the programs of all VFs of the GPU have allocated.",
     [](const StatsReport& s) {
       uint64_t used = 0;
       for (const VfStatsReport& vf : s.vfs) used += vf.vf.vram_used_bytes;
       return used;
     }},
    {"vgpud_scheduler_fifo", "gauge", "1 if the scheduler thread has real-time priority.",
     [](const StatsReport& s) { return uint64_t{s.gpu.fifo}; }},
    {"vgpud_history_up", "gauge", "1 if the usage history is written, 0 if vgpud runs without it.",
     [](const StatsReport& s) { return uint64_t{s.history.name == std::string_view("on")}; }},
    {"vgpud_history_lost_vfs_total", "counter",
     "VFs that were gone before the usage history could be written, and were given up.",
     [](const StatsReport& s) { return s.history.lost_vfs; }},
};

void PutGpus(PrometheusText& out, const Gpus& gpus) {
  for (const GpuCounter& counter : kGpuCounters) {
    out.Family(counter.name, "counter", counter.help);
    for (const StatsReport& gpu : gpus.all()) PutValue(out, gpus.Of(gpu), counter.get(gpu), counter.ns);
  }
  for (const GpuHistogram& histogram : kGpuHistograms) {
    out.Family(histogram.name, "histogram", histogram.help);
    for (const StatsReport& gpu : gpus.all()) out.Histogram(gpus.Of(gpu), histogram.get(gpu));
  }
  for (const GpuGauge& gauge : kGpuGauges) {
    out.Family(gauge.name, gauge.type, gauge.help);
    for (const StatsReport& gpu : gpus.all()) out.Sample(gpus.Of(gpu), gauge.get(gpu));
  }
}

const std::vector<GpuRung>& Rungs(const StatsReport& gpu) {
  static const std::vector<GpuRung> kNone;
  return gpu.about.facts ? gpu.about.facts->rungs : kNone;
}

void PutRungs(PrometheusText& out, const Gpus& gpus) {
  if (std::all_of(gpus.all().begin(), gpus.all().end(), [](const StatsReport& gpu) { return Rungs(gpu).empty(); }))
    return;
  out.Family(
      "vgpud_gpu_rung_works", "gauge",
      "1 if this way to take kernels off a GPU that is not vgpud's own worked at start (vgpuctl gpu says more).");
  for (const StatsReport& gpu : gpus.all())
    for (const GpuRung& rung : Rungs(gpu)) out.Sample(With(gpus.Of(gpu), "rung", rung.name), uint64_t{rung.works});
}

void PutVfs(PrometheusText& out, const Gpus& gpus) {
  out.Family("vgpud_vf_info", "gauge",
             "1; its labels say which VF it is, its state, its tenant, and whose domain has it.");
  gpus.EachVf([&](const StatsReport& gpu, size_t i, const auto& labels) {
    const VfReport& vf = gpu.vfs[i].vf;
    PrometheusText::Labels all = With(With(labels, "uuid", vf.uuid), "state", vf.state);
    if (!vf.tenant.empty()) all = With(all, "tenant", vf.tenant);
    if (!vf.domain.name.empty()) all = With(With(all, "domain", vf.domain.name), "domain_uuid", vf.domain.uuid);
    out.Sample(all, uint64_t{1});
  });
  for (const ReportStatistic& row : ReportStatistics()) {
    if (row.about.metric == nullptr) continue;
    out.Family(fmt::format("vgpud_vf_{}", row.about.metric), row.about.gauge ? "gauge" : "counter", row.about.help);
    gpus.EachVf([&](const StatsReport& gpu, size_t i, const auto& labels) {
      PutValue(out, labels, row.get(gpu.vfs[i]), row.about.ns);
    });
  }
  PutGuestEvents(out, gpus);
  PutKernelFaults(out, gpus);
  for (const VfHistogram& histogram : VfHistograms()) {
    out.Family(fmt::format("vgpud_vf_{}", histogram.metric), "histogram", histogram.help);
    gpus.EachVf([&](const StatsReport& gpu, size_t i, const auto& labels) {
      out.Histogram(labels, histogram.get(gpu.vfs[i].stats));
    });
  }
}

}  // namespace

std::string MetricsText(const std::vector<StatsReport>& all) {
  const Gpus gpus(all);
  PrometheusText out;
  PutInfo(out, gpus);
  PutGpus(out, gpus);
  out.Family("vgpud_protection", "gauge", "1 if this protection is in force on this host (vgpuctl gpu says why not).");
  if (!all.empty())
    for (const Protection& row : all.front().about.protections)
      out.Sample({{"name", row.name}}, uint64_t{row.in_force});
  PutRungs(out, gpus);
  PutFairness(out, gpus);
  PutVfs(out, gpus);
  return out.text();
}

std::string MetricsText(const StatsReport& stats) { return MetricsText(std::vector<StatsReport>{stats}); }

}  // namespace vgpud::daemon
