#include "vgpud/control_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "vgpud/control_api.h"

namespace vgpud {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::string Quoted(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// A flat JSON object without duplicate or unknown keys.
ApiResult<Json> ParseObject(std::string_view body, const std::set<std::string>& known) {
  std::set<std::string> seen;
  std::string duplicate;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
      duplicate = parsed.get<std::string>();
    return true;
  };
  Json object;
  try {
    object = Json::parse(body, on_event);
  } catch (const Json::exception& e) {
    return ApiFail(400, fmt::format("the request body is not JSON: {}", e.what()));
  }
  if (!object.is_object()) return ApiFail(400, "the request body must be a JSON object");
  if (!duplicate.empty()) return ApiFail(400, fmt::format("{} is given twice", Quoted(duplicate)), duplicate);
  for (const auto& item : object.items())
    if (known.count(item.key()) == 0) {
      std::string names;
      for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
      return ApiFail(400, fmt::format("unknown field {} (known: {})", Quoted(item.key()), names), item.key());
    }
  return object;
}

struct Range {
  const char* field;
  uint64_t min;
  uint64_t max;
  const char* unit;
  const char* hint;
};
constexpr Range kWeight{"weight", control::kMinWeight, control::kMaxWeight, "",
                        "100 is an equal share, 200 twice as much"};
constexpr Range kSlice{"slice_us", control::kMinSliceUs, control::kMaxSliceUs, " us", "100 us to 1 s"};
constexpr Range kVram{"vram_bytes", control::kMinVramBytes, control::kMaxVramBytes, " bytes", "1 MiB to 1 TiB"};

ApiResult<uint64_t> Number(const Json& value, const Range& range) {
  if (!value.is_number_integer())
    return ApiFail(400, fmt::format("{} must be an integer, not {}", range.field, Quoted(value)), range.field);
  const bool negative = !value.is_number_unsigned() && value.get<int64_t>() < 0;
  const uint64_t number = negative ? 0 : value.get<uint64_t>();
  if (negative || number < range.min || number > range.max)
    return ApiFail(400,
                   fmt::format("{} {}{} is out of range {}..{}{} ({})", range.field, Quoted(value), range.unit,
                               range.min, range.max, range.unit, range.hint),
                   range.field);
  return number;
}

OrderedJson Describe(const VfReport& vf) {
  OrderedJson json{{"name", vf.name},
                   {"uuid", vf.uuid},
                   {"state", vf.state},
                   {"weight", vf.weight},
                   {"slice_us", vf.slice_us},
                   {"slice_fixed", vf.slice_fixed},
                   {"vram_bytes", vf.vram_bytes},
                   {"vram_used_bytes", vf.vram_used_bytes},
                   {"executors", vf.executors},
                   {"client_connected", vf.client_connected},
                   {"vfio_user_socket", vf.vfio_user_socket},
                   {"channel_socket", vf.channel_socket}};
  auto events = OrderedJson::object();
  for (size_t e = 0; e < kGuardedEvents; ++e)
    events[kEventNames[e]] = {{"count", vf.events.count[e]}, {"throttled", vf.events.throttled[e]}};
  json["events"] = std::move(events);
  json["throttled_ns"] = vf.events.throttled_ns;
  if (!vf.reason.empty()) json["reason"] = vf.reason;
  return json;
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
  return versioned.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

ApiResult<VfSpec> ParseVfSpec(std::string_view body) {
  const auto object = ParseObject(body, {"name", "weight", "slice_us", "vram_bytes"});
  if (!object) return tl::unexpected(object.error());
  VfSpec spec;
  spec.vram_bytes = control::kDefaultVramBytes;
  const auto name = object->find("name");
  if (name == object->end()) return ApiFail(400, "name is missing", "name");
  if (!name->is_string() || !control::IsValidName(name->get_ref<const std::string&>()))
    return ApiFail(400,
                   fmt::format("name {} is not usable: 1 to {} characters a-z, 0-9 and -, the first not -",
                               Quoted(*name), control::kMaxNameBytes),
                   "name");
  spec.name = name->get<std::string>();
  if (const auto it = object->find("weight"); it != object->end()) {
    const auto weight = Number(*it, kWeight);
    if (!weight) return tl::unexpected(weight.error());
    spec.weight = static_cast<uint32_t>(*weight);
  }
  if (const auto it = object->find("slice_us"); it != object->end() && !it->is_null()) {
    const auto slice = Number(*it, kSlice);
    if (!slice) return tl::unexpected(slice.error());
    spec.slice_us = *slice;
  }
  if (const auto it = object->find("vram_bytes"); it != object->end()) {
    const auto vram = Number(*it, kVram);
    if (!vram) return tl::unexpected(vram.error());
    spec.vram_bytes = *vram;
  }
  return spec;
}

ApiResult<VfPatch> ParseVfPatch(std::string_view body) {
  const auto object = ParseObject(body, {"weight", "slice_us"});
  if (!object) return tl::unexpected(object.error());
  if (object->empty()) return ApiFail(400, "nothing to change: give weight or slice_us");
  VfPatch patch;
  if (const auto it = object->find("weight"); it != object->end()) {
    const auto weight = Number(*it, kWeight);
    if (!weight) return tl::unexpected(weight.error());
    patch.weight = static_cast<uint32_t>(*weight);
  }
  if (const auto it = object->find("slice_us"); it != object->end()) {
    patch.slice_us = 0;
    if (!it->is_null()) {
      const auto slice = Number(*it, kSlice);
      if (!slice) return tl::unexpected(slice.error());
      patch.slice_us = *slice;
    }
  }
  return patch;
}

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

std::string ToJson(const VfReport& vf, const std::vector<VfChange>& changes, uint64_t round) {
  auto list = OrderedJson::array();
  for (const VfChange& c : changes)
    list.push_back(OrderedJson{{"field", c.field}, {"old", c.old_value}, {"new", c.new_value}});
  return Finish({{"vf", Describe(vf)}, {"changes", list}, {"round", round}});
}

std::string ToJson(const GpuReport& gpu) {
  return Finish({{"name", gpu.name},
                 {"kind", gpu.kind},
                 {"policy", "strict"},
                 {"idle", "yield"},
                 {"base_slice_us", gpu.base_slice_us},
                 {"preempt_timeout_us", gpu.preempt_timeout_us},
                 {"vfs", gpu.vfs},
                 {"scheduler_fifo", gpu.fifo}});
}

std::string ToJson(const GpuThread::Stats& gpu, const std::vector<VfStatsReport>& vfs) {
  auto list = OrderedJson::array();
  for (const VfStatsReport& vf : vfs) {
    const VfAccount& a = vf.stats.account;
    const LatencyHistogram& drain = vf.stats.latency.drain;
    list.push_back(OrderedJson{{"name", vf.name},
                               {"weight", vf.weight},
                               {"slice_us", vf.slice_us},
                               {"entitled_ns", a.entitled_ns},
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
