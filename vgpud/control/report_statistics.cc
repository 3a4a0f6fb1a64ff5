// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/report_statistics.h"

namespace vgpud::daemon {
namespace {

using Report = VfStatsReport;

std::vector<ReportStatistic> OwnStatistics() {
  return {
      {{.name = "cpu_ns",
        .metric = "cpu_seconds_total",
        .help = "Processor time that all processes of the VF used since it was created.",
        .ns = true},
       [](const Report& r) { return r.vf.cpu_ns; }},
      {{.name = "cpu_outside_turns_ns",
        .metric = "cpu_outside_turns_seconds_total",
        .help = "The least part of it that was used outside of the VF's turns.",
        .ns = true},
       [](const Report& r) { return r.cpu_outside_turns_ns; }},
      {{.name = "gave_way"}, [](const Report& r) { return r.vf.gave_way; }},
      {{.name = "gave_way_ns",
        .metric = "gave_way_seconds_total",
        .help = "For how long it gave way since it had computed too much outside of its turns.",
        .ns = true},
       [](const Report& r) { return r.vf.gave_way_ns; }},
      {{.metric = "weight", .help = "Share of the VF relative to the others.", .gauge = true},
       [](const Report& r) { return uint64_t{r.vf.view.weight}; }},
      {{.metric = "slice_seconds",
        .help = "Length of a turn of the VF when it owes nothing.",
        .ns = true,
        .gauge = true},
       [](const Report& r) { return r.vf.slice_us * 1000; }},
      {{.name = "wake_bound_ns",
        .metric = "wake_bound_seconds",
        .help = "The longest wait for a turn after sleep that the policy promises, switches apart. 0: none.",
        .ns = true,
        .gauge = true},
       [](const Report& r) { return r.vf.wake_bound_ns; }},
      {{.metric = "vram_bytes", .help = "GPU memory that the VF may use.", .gauge = true},
       [](const Report& r) { return r.vf.vram_bytes; }},
      {{.metric = "vram_used_bytes", .help = "GPU memory that the VF's programs have allocated.", .gauge = true},
       [](const Report& r) { return r.vf.vram_used_bytes; }},
      {{.metric = "host_memory_bytes",
        .help = "Host memory that the VF's programs may take beside GPU memory.",
        .gauge = true},
       [](const Report& r) { return r.vf.host_memory_bytes; }},
      {{.metric = "host_memory_used_bytes",
        .help = "Host memory that the VF's programs have been granted.",
        .gauge = true},
       [](const Report& r) { return r.vf.host_memory_used_bytes; }},
      {{.metric = "executors", .help = "Processes that run programs of the VF.", .gauge = true},
       [](const Report& r) { return uint64_t{r.vf.executors}; }},
      {{.metric = "client_connected", .help = "1 while a virtual machine is connected to the VF.", .gauge = true},
       [](const Report& r) { return uint64_t{r.vf.client_connected}; }},
      {{.metric = "server_throttled_total", .help = "Times that the VF's vgpud-vf asked vgpud for too much."},
       [](const Report& r) { return r.vf.server.throttled; }},
      {{.metric = "server_throttled_seconds_total",
        .help = "Time in which it was not read from because of that.",
        .ns = true},
       [](const Report& r) { return r.vf.server.throttled_ns; }},
      {{.metric = "server_unanswered_seconds",
        .help = "For how long it has not answered vgpud now.",
        .ns = true,
        .gauge = true},
       [](const Report& r) { return r.vf.server.unanswered_ns; }},
      {{.metric = "server_hangs_total", .help = "Times that it was killed because it did not answer."},
       [](const Report& r) { return r.vf.server.hangs; }},
      {{.metric = "log_lines_dropped_total", .help = "Lines of the VF's processes that were too many for the log."},
       [](const Report& r) { return r.vf.server.log_lines_dropped; }},
  };
}

}  // namespace

const std::vector<ReportStatistic>& ReportStatistics() {
  static const std::vector<ReportStatistic> all = [] {
    std::vector<ReportStatistic> rows;
    for (const VfStatistic& row : VfStatistics())
      rows.push_back({row.about, [get = row.get](const Report& r) { return get(r.stats); }});
    for (ReportStatistic& row : OwnStatistics()) rows.push_back(std::move(row));
    return rows;
  }();
  return all;
}

}  // namespace vgpud::daemon
