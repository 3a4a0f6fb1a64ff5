// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/metrics.h"

#include <fmt/format.h>

#include <string_view>

#include "base/event_budget.h"
#include "vgpud/control/prometheus_text.h"
#include "vgpud/control/report_statistics.h"

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

void PutFairness(PrometheusText& out, const StatsReport& stats) {
  out.Family("vgpud_gpu_jain_index", "gauge",
             "Jain's fairness index of received over entitled time, of the VFs that had work all through the window.");
  for (const auto& window : stats.windows)
    if (window.figures.jain) out.Sample({{"window", window.name}}, *window.figures.jain);
  out.Family("vgpud_vf_share_error", "gauge",
             "Part of the GPU received minus part entitled to, among the VFs that had work all through the window.");
  for (const auto& window : stats.windows)
    for (size_t i = 0; i < stats.vfs.size(); ++i)
      if (const SharePart* part = window.figures.Of(stats.keys[i]))
        out.Sample({{"vf", stats.vfs[i].vf.name}, {"window", window.name}}, part->error());
}

void PutGuestEvents(PrometheusText& out, const StatsReport& stats) {
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
    for (const VfStatsReport& vf : stats.vfs)
      for (size_t e = 0; e < kGuardedEvents; ++e)
        out.Sample({{"vf", vf.vf.name}, {"event", kEventNames[e]}}, family.get(vf.vf.events, e));
  }
}

}  // namespace

std::string MetricsText(const StatsReport& stats) {
  PrometheusText out;
  for (const GpuCounter& counter : kGpuCounters) {
    out.Family(counter.name, "counter", counter.help);
    PutValue(out, {}, counter.get(stats), counter.ns);
  }
  out.Family("vgpud_gpu_switch_duration_seconds", "histogram", "From taking the GPU back until the next VF runs.");
  out.Histogram({}, stats.gpu.switches);
  out.Family("vgpud_gpu_slice_end_late_seconds", "histogram",
             "From the end of each slice that was used up until the GPU was taken back, since vgpud was started.");
  out.Histogram({}, stats.gpu.slice_ends);
  out.Family("vgpud_scheduler_wake_late_seconds", "histogram",
             "How late the timed waits of the scheduler thread returned, since vgpud was started.");
  out.Histogram({}, stats.gpu.wake_ups);
  out.Family("vgpud_gpu_vfs", "gauge", "VFs there are.");
  out.Sample({}, uint64_t{stats.vfs.size()});
  out.Family("vgpud_scheduler_realtime", "gauge", "1 if the scheduler thread has real-time priority.");
  out.Sample({}, uint64_t{stats.gpu.fifo});
  out.Family("vgpud_history_up", "gauge", "1 if the usage history is written, 0 if vgpud runs without it.");
  out.Sample({}, uint64_t{stats.history.name == std::string_view("on")});
  out.Family("vgpud_history_lost_vfs_total", "counter",
             "VFs that were gone before the usage history could be written, and were given up.");
  out.Sample({}, stats.history.lost_vfs);
  out.Family("vgpud_protection", "gauge", "1 if this protection is in force on this host (vgpuctl gpu says why not).");
  for (const Protection& row : stats.protections) out.Sample({{"name", row.name}}, uint64_t{row.in_force});
  PutFairness(out, stats);
  out.Family("vgpud_vf_info", "gauge", "1; its labels say which VF it is, its state, and whose domain has it.");
  for (const VfStatsReport& vf : stats.vfs) {
    PrometheusText::Labels labels{{"vf", vf.vf.name}, {"uuid", vf.vf.uuid}, {"state", vf.vf.state}};
    if (!vf.vf.domain.name.empty())
      labels.insert(labels.end(), {{"domain", vf.vf.domain.name}, {"domain_uuid", vf.vf.domain.uuid}});
    out.Sample(labels, uint64_t{1});
  }
  for (const ReportStatistic& row : ReportStatistics()) {
    if (row.about.metric == nullptr) continue;
    out.Family(fmt::format("vgpud_vf_{}", row.about.metric), row.about.gauge ? "gauge" : "counter", row.about.help);
    for (const VfStatsReport& vf : stats.vfs) PutValue(out, {{"vf", vf.vf.name}}, row.get(vf), row.about.ns);
  }
  PutGuestEvents(out, stats);
  for (const VfHistogram& histogram : VfHistograms()) {
    out.Family(fmt::format("vgpud_vf_{}", histogram.metric), "histogram", histogram.help);
    for (const VfStatsReport& vf : stats.vfs) out.Histogram({{"vf", vf.vf.name}}, histogram.get(vf.stats));
  }
  return out.text();
}

}  // namespace vgpud::daemon
