#include "vgpud/control_json.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "sched/knobs.h"
#include "vgpud/control_api.h"

namespace vgpud {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson Value(const FieldValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return OrderedJson(nullptr);
        else
          return OrderedJson(v);
      },
      value);
}

std::string Key(const KnobRow& row) { return std::string(row.name); }

// The knobs of a VF in the order of their table, the slice as it is in force.
void PutKnobs(const VfReport& vf, OrderedJson* json) {
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    (*json)[Key(row)] =
        row.knob == Knob::kSlice ? OrderedJson(vf.slice_us) : Value(ToField(row, KnobOf(vf.view, row.knob)));
    if (row.knob != Knob::kSlice) continue;
    (*json)["slice_fixed"] = vf.view.slice != Ns{0};
    (*json)["share"] = std::round(vf.share * kWhole) / kWhole;
  }
}

OrderedJson Describe(const VfReport& vf) {
  OrderedJson json{{"name", vf.name}, {"uuid", vf.uuid}, {"state", vf.state}};
  if (!vf.reason.empty()) json["reason"] = vf.reason;
  json["paused"] = vf.view.paused;
  PutKnobs(vf, &json);
  json.update(OrderedJson{{"vram_bytes", vf.vram_bytes},
                          {"vram_used_bytes", vf.vram_used_bytes},
                          {"executors", vf.executors},
                          {"client_connected", vf.client_connected},
                          {"vfio_user_socket", vf.vfio_user_socket},
                          {"channel_socket", vf.channel_socket}});
  auto events = OrderedJson::object();
  for (size_t e = 0; e < kGuardedEvents; ++e)
    events[kEventNames[e]] = {{"count", vf.events.count[e]}, {"throttled", vf.events.throttled[e]}};
  json["events"] = std::move(events);
  json["throttled_ns"] = vf.events.throttled_ns;
  return json;
}

OrderedJson Describe(const GpuReport& gpu) {
  const PolicyOptions& options = gpu.settings.options;
  OrderedJson json{
      {"name", gpu.name}, {"kind", gpu.kind}, {"policy", gpu.settings.policy}, {"idle", NameOf(options.idle)}};
  for (const KnobRow& row : Knobs())
    if (!row.per_vf && row.knob != Knob::kGroupWeight) json[Key(row)] = Value(ToField(row, KnobOf(options, row.knob)));
  auto groups = OrderedJson::object();
  for (size_t i = 0; i < kMaxGroups; ++i)
    if (options.group_weights[i] != kDefaultWeight) groups[fmt::format("{}", i)] = options.group_weights[i];
  json[Key(RowOf(Knob::kGroupWeight))] = groups;
  json.update(OrderedJson{{"preempt_timeout_us", gpu.preempt_timeout_us},
                          {"switch_cost_ns", static_cast<uint64_t>(gpu.switch_cost.count())},
                          {"vfs", gpu.vfs},
                          {"scheduler_fifo", gpu.fifo}});
  return json;
}

OrderedJson List(const std::vector<Change>& changes) {
  auto list = OrderedJson::array();
  for (const Change& c : changes) {
    OrderedJson json;
    if (!c.vf.empty()) json["vf"] = c.vf;
    json.update(OrderedJson{{"field", c.field}, {"old", Value(c.old_value)}, {"new", Value(c.new_value)}});
    list.push_back(json);
  }
  return list;
}

double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

// Counts by the upper edge of their bucket, in ns; empty buckets are left out.
OrderedJson Buckets(const LatencyHistogram& histogram) {
  auto json = OrderedJson::object();
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
    if (histogram.buckets()[i] != 0) json[fmt::format("{}", LatencyHistogram::UpperNs(i))] = histogram.buckets()[i];
  return json;
}

std::string Finish(OrderedJson json) {
  OrderedJson versioned{{"apiVersion", control::kApiVersion}};
  versioned.update(json);
  return versioned.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string ToJson(const ApiError& error) {
  OrderedJson json{{"error", error.error}};
  if (!error.field.empty()) json["field"] = error.field;
  return Finish(json);
}

std::string ToJson(const VfReport& vf) { return Finish(Describe(vf)); }

std::string ToJson(const std::vector<VfReport>& vfs) {
  auto list = OrderedJson::array();
  for (const VfReport& vf : vfs) list.push_back(Describe(vf));
  return Finish({{"vfs", list}});
}

std::string ToJson(const ChangeReport& change) {
  auto json = OrderedJson::object();
  if (change.vf) json["vf"] = Describe(*change.vf);
  if (change.gpu) json["gpu"] = Describe(*change.gpu);
  json["changes"] = List(change.difference.changes);
  json["effects"] = List(change.difference.effects);
  if (change.round) json["round"] = *change.round;
  json["dry_run"] = !change.round;
  return Finish(json);
}

std::string ToJson(const GpuReport& gpu) { return Finish(Describe(gpu)); }

std::string ToJson(const GpuThread::Stats& gpu, const std::vector<VfStatsReport>& vfs) {
  auto list = OrderedJson::array();
  for (const VfStatsReport& vf : vfs) {
    const VfAccount& a = vf.stats.account;
    const LatencyHistogram& drain = vf.stats.latency.drain;
    OrderedJson json{{"name", vf.vf.name}, {"state", vf.vf.state}, {"paused", vf.vf.view.paused}};
    PutKnobs(vf.vf, &json);
    json.update(OrderedJson{{"entitled_ns", a.entitled_ns},
                            {"received_ns", a.received_ns},
                            {"runnable_ns", a.runnable_ns},
                            {"waited_ns", a.waited_ns},
                            {"slices", a.slices},
                            {"forced_preemptions", a.forced_preemptions},
                            {"overrun_ns_total", a.overrun_ns},
                            {"worst_overrun_ns", a.worst_overrun_ns},
                            {"drain_p50_us", Microseconds(drain.Percentile(50))},
                            {"drain_p99_us", Microseconds(drain.Percentile(99))},
                            {"drain_max_us", Microseconds(drain.max_ns())},
                            {"drain_ns_buckets", Buckets(drain)},
                            {"overrun_ns_buckets", Buckets(vf.stats.latency.overrun)},
                            {"debt_ns", vf.stats.debt_ns},
                            {"hangs", a.hangs},
                            {"host_stalls", a.host_stalls},
                            {"kernels", vf.stats.work.kernels},
                            {"warp_instructions", vf.stats.work.warp_instructions},
                            {"executor_preempts", vf.stats.work.executor_preempts}});
    list.push_back(json);
  }
  return Finish({{"now_ns", gpu.now_ns},
                 {"round", gpu.round},
                 {"run_ns_total", gpu.run_ns},
                 {"switch_ns_total", gpu.switch_ns},
                 {"idle_ns_total", gpu.idle_ns},
                 {"impossible_events", gpu.impossible_events},
                 {"scheduler_fifo", gpu.fifo},
                 {"vfs", list}});
}

}  // namespace vgpud
