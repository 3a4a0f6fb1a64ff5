// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/stats_json.h"

#include <fmt/core.h>

#include <cmath>
#include <string_view>

#include "vgpud/control/json_parts.h"
#include "vgpud/control/report_statistics.h"

namespace vgpud::daemon {
namespace {

double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

// Counts by the upper edge of their bucket, in ns; empty buckets are left out.
OrderedJson Buckets(const LatencyHistogram& histogram) {
  auto json = OrderedJson::object();
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
    if (histogram.buckets()[i] != 0) json[fmt::format("{}", LatencyHistogram::UpperNs(i))] = histogram.buckets()[i];
  return json;
}

void PutHistogram(const std::string& name, const LatencyHistogram& histogram, OrderedJson* json) {
  (*json)[name + "_p50_us"] = Microseconds(histogram.Percentile(50));
  (*json)[name + "_p99_us"] = Microseconds(histogram.Percentile(99));
  (*json)[name + "_max_us"] = Microseconds(histogram.max_ns());
  (*json)[name + "_ns_buckets"] = Buckets(histogram);
}

OrderedJson Describe(const VfRecent& recent) {
  OrderedJson json{{"window_ns", recent.window_ns}};
  for (const AccountStatistic& row : kAccountStatistics)
    if (!row.about.gauge) json[row.about.name] = recent.account.*row.value;
  return json;
}

OrderedJson Describe(const StatsReport& stats, size_t i) {
  const VfStatsReport& vf = stats.vfs[i];
  OrderedJson json{{"name", vf.vf.name}};
  if (!vf.vf.gpu.empty()) json["gpu"] = vf.vf.gpu;
  json.update(OrderedJson{{"state", vf.vf.state}, {"paused", vf.vf.view.paused}});
  PutDomain(vf.vf.domain, &json);
  PutKnobs(vf.vf, &json);
  for (const ReportStatistic& row : ReportStatistics())
    if (row.about.name != nullptr) json[row.about.name] = row.get(vf);
  json["kernel_faults"] = Describe(vf.stats.work.faults);
  json["utilization"] = Rounded(vf.vf.utilization);
  json["last_second"] = Describe(vf.recent);
  for (const auto& window : stats.windows) {
    const SharePart* part = window.figures.Of(stats.keys[i]);
    json[fmt::format("share_error_{}", window.name)] =
        part != nullptr ? OrderedJson(Rounded(part->error())) : OrderedJson(nullptr);
  }
  for (const VfHistogram& histogram : VfHistograms()) PutHistogram(histogram.name, histogram.get(vf.stats), &json);
  return json;
}

OrderedJson Describe(const std::vector<FairnessReport>& windows) {
  auto json = OrderedJson::object();
  for (const auto& window : windows)
    json[window.name] = {{"window_ns", static_cast<uint64_t>(window.figures.length.count())},
                         {"busy_vfs", window.figures.parts.size()},
                         {"jain", window.figures.jain ? OrderedJson(Rounded(*window.figures.jain)) : nullptr}};
  return json;
}

}  // namespace

namespace {

OrderedJson DescribeGpu(const StatsReport& stats) {
  const GpuStats& gpu = stats.gpu;
  OrderedJson json{
      {"now_ns", gpu.now_ns},
      {"round", gpu.round},
      {"run_ns_total", gpu.run_ns},
      {"switch_ns_total", gpu.switch_ns},
      {"idle_ns_total", gpu.idle_ns},
      {"stall_ns_total", gpu.stall_ns},
      {"leaving_ns", gpu.leaving_ns},
      {"last_second",
       {{"window_ns", stats.recent.window_ns},
        {"run_ns", stats.recent.use.run_ns},
        {"switch_ns", stats.recent.use.switch_ns},
        {"idle_ns", stats.recent.use.idle_ns},
        {"stall_ns", stats.recent.use.stall_ns}}},
      {"impossible_events", gpu.impossible_events},
      {"scheduler_fifo", gpu.fifo},
      {"fairness", Describe(stats.windows)},
      {"trace", {{"turns", stats.traced_turns}, {"capacity", stats.trace_capacity}}},
      {"history", {{"state", stats.history.name}, {"path", stats.history.path}, {"lost_vfs", stats.history.lost_vfs}}}};
  if (!stats.history.error.empty()) json["history"]["error"] = stats.history.error;
  json["spin_us"] = Microseconds(static_cast<uint64_t>(gpu.spin.count()));
  PutHistogram("switch", gpu.switches, &json);
  PutHistogram("slice_end_late", gpu.slice_ends, &json);
  PutHistogram("wake_late", gpu.wake_ups, &json);
  return json;
}

OrderedJson DescribeVfs(const StatsReport& stats) {
  auto list = OrderedJson::array();
  for (size_t i = 0; i < stats.vfs.size(); ++i) list.push_back(Describe(stats, i));
  return list;
}

}  // namespace

std::string ToJson(const StatsReport& stats) {
  OrderedJson json = DescribeGpu(stats);
  json["vfs"] = DescribeVfs(stats);
  return Finish(json);
}

std::string ToJson(const std::vector<StatsReport>& gpus) {
  if (gpus.size() == 1) return ToJson(gpus.front());
  OrderedJson json{{"gpus", OrderedJson::array()}, {"vfs", OrderedJson::array()}};
  for (const StatsReport& gpu : gpus) {
    OrderedJson figures{{"name", gpu.about.name}};
    figures.update(DescribeGpu(gpu));
    json["gpus"].push_back(std::move(figures));
    for (OrderedJson& vf : DescribeVfs(gpu)) json["vfs"].push_back(std::move(vf));
  }
  return Finish(json);
}

namespace {

constexpr std::string_view kNoRows = "[]";

std::string EmptyReport(const std::string& from, const std::string& to) {
  return Finish({{"from", from}, {"to", to}, {"rows", OrderedJson::array()}});
}

}  // namespace

std::string ReportHead(const std::string& from, const std::string& to) {
  const std::string empty = EmptyReport(from, to);
  return empty.substr(0, empty.find(kNoRows) + 1);
}

std::string ReportTail(const std::string& from, const std::string& to) {
  const std::string empty = EmptyReport(from, to);
  return empty.substr(empty.find(kNoRows) + 1);
}

std::string ReportRows(const std::vector<History::Day>& days, const std::string& gpu) {
  std::string rows;
  for (const History::Day& day : days) {
    OrderedJson row{{"day", day.day},
                    {"name", day.vf.name},
                    {"uuid", day.is_sum() ? std::string() : day.vf.uuid},
                    {"destroyed", day.vf.destroyed}};
    if (day.is_sum()) row["vfs"] = day.vfs;
    if (!gpu.empty()) row["gpu"] = gpu;
    if (!day.vf.tenant.empty()) row["tenant"] = day.vf.tenant;
    PutDomain(day.vf.domain, &row);
    for (const VfStatistic* kept : UsageStatistics())
      if (kept->about.reported) row[kept->about.column] = kept->get(day.vf.usage);
    if (!rows.empty()) rows += ',';
    rows += row.dump();
  }
  return rows;
}

}  // namespace vgpud::daemon
