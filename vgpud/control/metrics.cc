// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/metrics.h"

#include <string_view>

#include "base/event_budget.h"
#include "vgpud/control/prometheus_text.h"

namespace vgpud {
namespace {

using Stats = GpuThread::VfStats;

struct VfCounter {
  std::string_view name;
  std::string_view help;
  uint64_t (*get)(const Stats&);
  bool ns;
};
constexpr VfCounter kCounters[] = {
    {"vgpud_vf_entitled_seconds_total", "GPU time that policy, weights and limits promised to the VF.",
     [](const Stats& s) { return s.account.entitled_ns; }, true},
    {"vgpud_vf_received_seconds_total", "GPU time that the VF had, from the grant to its last acknowledgement.",
     [](const Stats& s) { return s.account.received_ns; }, true},
    {"vgpud_vf_borrowed_seconds_total", "Part of the received time that the VF had only because others were idle.",
     [](const Stats& s) { return s.account.borrowed_ns; }, true},
    {"vgpud_vf_unclaimed_seconds_total", "Part of the entitled time that the VF did not claim: it had no more work.",
     [](const Stats& s) { return s.account.unclaimed_ns; }, true},
    {"vgpud_vf_runnable_seconds_total", "Time in which the VF had work, running or waiting.",
     [](const Stats& s) { return s.account.runnable_ns; }, true},
    {"vgpud_vf_waited_seconds_total", "Time in which the VF had work and did not have the GPU.",
     [](const Stats& s) { return s.account.waited_ns; }, true},
    {"vgpud_vf_overrun_seconds_total", "Time that the VF held the GPU beyond the ends of its slices.",
     [](const Stats& s) { return s.account.overrun_ns; }, true},
    {"vgpud_vf_turns_total", "Turns of the VF on the GPU.", [](const Stats& s) { return s.account.slices; }, false},
    {"vgpud_vf_forced_preemptions_total", "Turns that were ended while the VF still had work.",
     [](const Stats& s) { return s.account.forced_preemptions; }, false},
    {"vgpud_vf_hangs_total", "Turns that ended with an executor being killed.",
     [](const Stats& s) { return s.account.hangs; }, false},
    {"vgpud_vf_host_stalls_total", "Turns that ended late because the host gave the VF no CPU.",
     [](const Stats& s) { return s.account.host_stalls; }, false},
    {"vgpud_vf_host_delay_seconds_total", "Time by which turns ended late because of the host, charged to nobody.",
     [](const Stats& s) { return s.account.host_delay_ns; }, true},
    {"vgpud_vf_kernels_total", "Kernels finished, as the VF's executors say.",
     [](const Stats& s) { return s.work.kernels; }, false},
    {"vgpud_vf_warp_instructions_total", "Warp instructions executed, as the VF's executors say.",
     [](const Stats& s) { return s.work.warp_instructions; }, false},
    {"vgpud_vf_executor_preempts_total", "Times an executor left the GPU with work left, as it says.",
     [](const Stats& s) { return s.work.executor_preempts; }, false},
    {"vgpud_vf_host_work_seconds_total",
     "Processor time of the VF's executors for what needs no turn, as they say, since vgpud was started.",
     [](const Stats& s) { return s.work.host_work_ns; }, true},
    {"vgpud_vf_module_loads_total", "Modules that the VF's executors have loaded or refused, since vgpud was started.",
     [](const Stats& s) { return s.work.module_loads; }, false},
    {"vgpud_vf_module_bytes_total", "Bytes of the images of these.", [](const Stats& s) { return s.work.module_bytes; },
     false},
    {"vgpud_vf_bad_slots_total", "States and counters of the VF's executors that cannot be, since vgpud was started.",
     [](const Stats& s) { return s.conduct.bad_slots; }, false},
    {"vgpud_vf_out_of_turn_total", "Turns of others in which an executor of the VF said that it was on the GPU.",
     [](const Stats& s) { return s.conduct.out_of_turn; }, false},
    {"vgpud_vf_bell_muted_total", "Times that the VF's executors rang so often that vgpud stopped listening.",
     [](const Stats& s) { return s.conduct.muted; }, false},
};

struct VfGauge {
  std::string_view name;
  std::string_view help;
  uint64_t (*get)(const VfStatsReport&);
  bool ns;
};
constexpr VfGauge kGauges[] = {
    {"vgpud_vf_debt_seconds", "Overrun that the VF has not repaid yet.",
     [](const VfStatsReport& vf) { return vf.stats.debt_ns; }, true},
    {"vgpud_vf_worst_overrun_seconds", "The longest overrun of a turn so far.",
     [](const VfStatsReport& vf) { return vf.stats.account.worst_overrun_ns; }, true},
    {"vgpud_vf_weight", "Share of the VF relative to the others.",
     [](const VfStatsReport& vf) { return uint64_t{vf.vf.view.weight}; }, false},
    {"vgpud_vf_slice_seconds", "Length of a turn of the VF when it owes nothing.",
     [](const VfStatsReport& vf) { return vf.vf.slice_us * 1000; }, true},
    {"vgpud_vf_vram_limit_bytes", "GPU memory that the VF may use.",
     [](const VfStatsReport& vf) { return vf.vf.vram_bytes; }, false},
    {"vgpud_vf_vram_used_bytes", "GPU memory that the VF's programs have allocated.",
     [](const VfStatsReport& vf) { return vf.vf.vram_used_bytes; }, false},
    {"vgpud_vf_host_memory_limit_bytes", "Host memory that the VF's programs may take beside GPU memory.",
     [](const VfStatsReport& vf) { return vf.vf.host_memory_bytes; }, false},
    {"vgpud_vf_host_memory_used_bytes", "Host memory that the VF's programs have been granted.",
     [](const VfStatsReport& vf) { return vf.vf.host_memory_used_bytes; }, false},
    {"vgpud_vf_executors", "Processes that run programs of the VF.",
     [](const VfStatsReport& vf) { return uint64_t{vf.vf.executors}; }, false},
    {"vgpud_vf_connected", "1 while a virtual machine is connected to the VF.",
     [](const VfStatsReport& vf) { return uint64_t{vf.vf.client_connected}; }, false},
};

struct CpuFigure {
  std::string_view name;
  std::string_view help;
  uint64_t (*get)(const VfStatsReport&);
};
constexpr CpuFigure kCpuFigures[] = {
    {"vgpud_vf_cpu_seconds_total", "Processor time that all processes of the VF used since it was created.",
     [](const VfStatsReport& vf) { return vf.vf.cpu_ns; }},
    {"vgpud_vf_cpu_outside_turns_seconds_total", "The least part of it that was used outside of the VF's turns.",
     [](const VfStatsReport& vf) { return vf.cpu_outside_turns_ns; }},
    {"vgpud_vf_gave_way_seconds_total", "For how long it gave way since it had computed too much outside of its turns.",
     [](const VfStatsReport& vf) { return vf.vf.gave_way_ns; }},
};

struct ServerFigure {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  uint64_t (*get)(const ServerReport&);
  bool ns;
};
constexpr ServerFigure kServerFigures[] = {
    {"vgpud_vf_server_throttled_total", "counter", "Times that the VF's vgpud-vf asked vgpud for too much.",
     [](const ServerReport& s) { return s.throttled; }, false},
    {"vgpud_vf_server_throttled_seconds_total", "counter", "Time in which it was not read from because of that.",
     [](const ServerReport& s) { return s.throttled_ns; }, true},
    {"vgpud_vf_server_unanswered_seconds", "gauge", "For how long it has not answered vgpud now.",
     [](const ServerReport& s) { return s.unanswered_ns; }, true},
    {"vgpud_vf_server_hangs_total", "counter", "Times that it was killed because it did not answer.",
     [](const ServerReport& s) { return s.hangs; }, false},
    {"vgpud_vf_log_lines_dropped_total", "counter", "Lines of the VF's processes that were too many for the log.",
     [](const ServerReport& s) { return s.log_lines_dropped; }, false},
};

struct VfHistogram {
  std::string_view name;
  std::string_view help;
  const LatencyHistogram& (*get)(const Stats&);
};
constexpr VfHistogram kHistograms[] = {
    {"vgpud_vf_turn_wait_seconds", "Wait before each turn: since the VF's last turn, or since it was seen with work.",
     [](const Stats& s) -> const LatencyHistogram& { return s.times.turn_wait; }},
    {"vgpud_vf_wake_wait_seconds", "The same, only before turns that followed a time without work.",
     [](const Stats& s) -> const LatencyHistogram& { return s.times.wake_wait; }},
    {"vgpud_vf_turn_overrun_seconds", "Overrun of each turn that used up its slice.",
     [](const Stats& s) -> const LatencyHistogram& { return s.times.overrun; }},
    {"vgpud_vf_drain_seconds", "From taking the GPU back until the VF's executors were off it.",
     [](const Stats& s) -> const LatencyHistogram& { return s.latency.drain; }},
};

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
  out.Family("vgpud_vf_info", "gauge", "1; its labels say what does not change while a VF lives, and its state.");
  for (const VfStatsReport& vf : stats.vfs)
    out.Sample({{"vf", vf.vf.name}, {"uuid", vf.vf.uuid}, {"state", vf.vf.state}}, uint64_t{1});
  for (const VfGauge& gauge : kGauges) {
    out.Family(gauge.name, "gauge", gauge.help);
    for (const VfStatsReport& vf : stats.vfs) PutValue(out, {{"vf", vf.vf.name}}, gauge.get(vf), gauge.ns);
  }
  for (const VfCounter& counter : kCounters) {
    out.Family(counter.name, "counter", counter.help);
    for (const VfStatsReport& vf : stats.vfs) PutValue(out, {{"vf", vf.vf.name}}, counter.get(vf.stats), counter.ns);
  }
  for (const CpuFigure& figure : kCpuFigures) {
    out.Family(figure.name, "counter", figure.help);
    for (const VfStatsReport& vf : stats.vfs) out.Seconds({{"vf", vf.vf.name}}, figure.get(vf));
  }
  for (const ServerFigure& figure : kServerFigures) {
    out.Family(figure.name, figure.type, figure.help);
    for (const VfStatsReport& vf : stats.vfs) PutValue(out, {{"vf", vf.vf.name}}, figure.get(vf.vf.server), figure.ns);
  }
  PutGuestEvents(out, stats);
  for (const VfHistogram& histogram : kHistograms) {
    out.Family(histogram.name, "histogram", histogram.help);
    for (const VfStatsReport& vf : stats.vfs) out.Histogram({{"vf", vf.vf.name}}, histogram.get(vf.stats));
  }
  return out.text();
}

}  // namespace vgpud
