// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/json.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sched/knobs.h"
#include "vgpud/control/json_parts.h"
#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

OrderedJson Amount(const ResourceRow& row, uint64_t amount) {
  if (row.knob == Knob::kGroup) return amount == 0 ? OrderedJson(nullptr) : OrderedJson(amount - 1);
  if (row.unit == ResourceUnit::kPart) return static_cast<double>(amount) / kWhole;
  return amount;
}

std::string Key(const KnobRow& row) { return std::string(row.name); }

OrderedJson Rungs(const std::vector<GpuRung>& rungs) {
  auto list = OrderedJson::array();
  for (const GpuRung& rung : rungs) list.push_back({{"name", rung.name}, {"works", rung.works}, {"what", rung.what}});
  return list;
}

// Of a lost VF whose definition could not be read no more is known.
OrderedJson Identity(const VfReport& vf) {
  OrderedJson json{{"name", vf.name}};
  if (!vf.gpu.empty()) json["gpu"] = vf.gpu;
  if (!vf.placed.empty()) json["placed"] = fmt::format("on {}: {}", vf.gpu, vf.placed);
  if (!vf.uuid.empty()) json["uuid"] = vf.uuid;
  json["state"] = vf.state;
  if (vf.revision != 0) json["revision"] = vf.revision;
  if (!vf.reason.empty()) json["reason"] = vf.reason;
  return json;
}

OrderedJson Describe(const VfReport& vf) {
  OrderedJson json = Identity(vf);
  if (!vf.settings_known) return json;
  if (!vf.profile.empty()) json["profile"] = vf.profile;
  if (!vf.tenant.empty()) json["tenant"] = vf.tenant;
  PutDomain(vf.domain, &json);
  PutOwner(vf.owner, &json);
  json["transient"] = vf.transient;
  json["paused"] = vf.view.paused;
  PutKnobs(vf, &json);
  if (vf.state == "lost") {
    for (const char* present : {"slice_us", "share"}) json.erase(present);
    json.update(OrderedJson{{"vram_bytes", vf.vram_bytes}, {"host_memory_bytes", vf.host_memory_bytes}});
    return json;
  }
  json.update(OrderedJson{{"utilization", Rounded(vf.utilization)},
                          {"vram_bytes", vf.vram_bytes},
                          {"vram_used_bytes", vf.vram_used_bytes},
                          {"host_memory_bytes", vf.host_memory_bytes},
                          {"host_memory_used_bytes", vf.host_memory_used_bytes},
                          {"executors", vf.executors},
                          {"client_connected", vf.client_connected},
                          {"vfio_user_socket", vf.vfio_user_socket},
                          {"channel_socket", vf.channel_socket}});
  auto events = OrderedJson::object();
  for (size_t e = 0; e < kGuardedEvents; ++e)
    events[kEventNames[e]] = {{"count", vf.events.count[e]}, {"throttled", vf.events.throttled[e]}};
  json["events"] = std::move(events);
  if (vf.kernel_faults) json["kernel_faults"] = Describe(*vf.kernel_faults);
  json["throttled_ns"] = vf.events.throttled_ns;
  json["server"] = {{"throttled", vf.server.throttled},
                    {"throttled_ns", vf.server.throttled_ns},
                    {"hangs", vf.server.hangs},
                    {"log_lines_dropped", vf.server.log_lines_dropped}};
  return json;
}

OrderedJson Describe(const GpuReport& gpu) {
  const PolicyOptions& options = gpu.settings.options;
  OrderedJson json{{"name", gpu.name},
                   {"kind", gpu.kind},
                   {"compute_capability", gpu.capability},
                   {"policy", gpu.settings.policy},
                   {"idle", NameOf(options.idle)}};
  for (const KnobRow& row : Knobs())
    if (!row.per_vf && row.knob != Knob::kGroupWeight)
      json[Key(row)] = ToJsonValue(ToField(row, KnobOf(options, row.knob)));
  auto groups = OrderedJson::object();
  for (size_t i = 0; i < kMaxGroups; ++i)
    if (options.group_weights[i] != kDefaultWeight) groups[fmt::format("{}", i)] = options.group_weights[i];
  json[Key(RowOf(Knob::kGroupWeight))] = groups;
  json.update(OrderedJson{{"preempt_timeout_us", gpu.preempt_timeout_us},
                          {"switch_cost_ns", static_cast<uint64_t>(gpu.switch_cost.count())},
                          {"vfs", gpu.vfs},
                          {"vram_bytes", gpu.vram_bytes == 0 ? OrderedJson(nullptr) : OrderedJson(gpu.vram_bytes)},
                          {"vram_promised_bytes", gpu.vram_promised_bytes},
                          {"numa_node", gpu.numa_node ? OrderedJson(*gpu.numa_node) : OrderedJson(nullptr)},
                          {"scheduler_fifo", gpu.fifo}});
  if (gpu.revision != 0) json["revision"] = gpu.revision;
  if (gpu.facts)
    json["device"] = {{"name", gpu.facts->name},
                      {"address", gpu.facts->address},
                      {"mig_instance", gpu.facts->mig_instance},
                      {"on_bus", gpu.facts->on_bus ? Describe(*gpu.facts->on_bus) : OrderedJson(nullptr)},
                      {"cuda_version", gpu.facts->driver},
                      {"memory_bytes", gpu.facts->memory_bytes},
                      {"context_bytes", gpu.facts->context_bytes},
                      {"taken_away_by", gpu.facts->taken_away_by},
                      {"rungs", Rungs(gpu.facts->rungs)}};
  auto protections = OrderedJson::array();
  for (const Protection& row : gpu.protections) {
    OrderedJson described{{"name", row.name}, {"in_force", row.in_force}};
    if (!row.in_force) described["why_not"] = row.why_not;
    protections.push_back(std::move(described));
  }
  json["protections"] = std::move(protections);
  return json;
}

}  // namespace

OrderedJson Describe(const std::vector<Change>& changes) {
  auto list = OrderedJson::array();
  for (const Change& c : changes) {
    OrderedJson json;
    if (!c.gpu.empty()) json["gpu"] = c.gpu;
    if (!c.vf.empty()) json["vf"] = c.vf;
    json.update(OrderedJson{{"field", c.field}, {"old", ToJsonValue(c.old_value)}, {"new", ToJsonValue(c.new_value)}});
    list.push_back(json);
  }
  return list;
}

void PutKnobs(const VfReport& vf, OrderedJson* json) {
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    (*json)[Key(row)] =
        row.knob == Knob::kSlice ? OrderedJson(vf.slice_us) : ToJsonValue(ToField(row, KnobOf(vf.view, row.knob)));
    if (row.knob != Knob::kSlice) continue;
    (*json)["slice_fixed"] = vf.view.slice != Ns{0};
    (*json)["share"] = Rounded(vf.share);
  }
}

double Rounded(double part) { return std::round(part * kWhole) / kWhole; }

OrderedJson Describe(const KernelFaults& faults) {
  auto json = OrderedJson::object();
  for (size_t row = 0; row < std::size(kKernelErrors); ++row)
    if (faults.of(row) != 0) json[kKernelErrors[row].label] = faults.of(row);
  return json;
}

std::string Finish(OrderedJson json) {
  OrderedJson versioned{{"apiVersion", control::kApiVersion}};
  versioned.update(json);
  return versioned.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

int HttpStatus(ErrorKind kind) {
  constexpr int kStatuses[] = {400, 413, 404, 405, 409, 500, 503, 403, 429, 504};
  return kStatuses[static_cast<size_t>(kind)];
}

std::string ErrorText(const std::string& error) { return Finish({{"error", error}}); }

std::string ToJson(const ApiError& error) {
  OrderedJson json{{"error", error.error}};
  if (!error.field.empty()) json["field"] = error.field;
  return Finish(json);
}

std::string ToJson(const VfReport& vf) { return Finish(Describe(vf)); }

std::string ToJson(const VfReport& vf, const std::vector<Record>& recent) {
  OrderedJson json = Describe(vf);
  json["recent_events"] = DescribeRecords(recent);
  return Finish(json);
}

std::string ToJson(const std::vector<VfReport>& vfs) {
  auto list = OrderedJson::array();
  for (const VfReport& vf : vfs) list.push_back(Describe(vf));
  return Finish({{"vfs", list}});
}

OrderedJson Describe(const Record& record) {
  OrderedJson json{{"number", record.number}, {"unix_ms", record.unix_ms}};
  if (record.kind != nullptr) json["kind"] = record.kind;
  if (!record.vf.empty()) json["vf"] = record.vf;
  if (!record.gpu.empty()) json["gpu"] = record.gpu;
  if (!record.by.empty()) json["by"] = record.by;
  if (record.pid != 0) json["pid"] = record.pid;
  if (!record.text.empty()) json["text"] = record.text;
  if (!record.changes.empty()) json["changes"] = Describe(record.changes);
  return json;
}

OrderedJson DescribeRecords(const std::vector<Record>& records) {
  auto list = OrderedJson::array();
  for (const Record& record : records) list.push_back(Describe(record));
  return list;
}

std::string ToJson(const std::vector<ProcessReport>& processes) {
  auto list = OrderedJson::array();
  for (const ProcessReport& process : processes) {
    OrderedJson json{{"vf", process.vf}, {"gpu", process.gpu}};
    if (!process.domain.empty()) json["domain"] = process.domain;
    if (!process.tenant.empty()) json["tenant"] = process.tenant;
    if (process.user) json["uid"] = *process.user;
    json.update(OrderedJson{{"pid", process.pid},
                            {"executor_pid", process.executor_pid},
                            {"has_context", process.has_context},
                            {"vram_bytes", process.vram_bytes},
                            {"gpu_ns", process.gpu_ns},
                            {"cpu_ns", process.cpu_ns}});
    list.push_back(std::move(json));
  }
  return Finish({{"processes", list}});
}

std::string ToJson(const ChangeReport& change) {
  auto json = OrderedJson::object();
  if (change.vf) json["vf"] = Describe(*change.vf);
  if (change.gpu) json["gpu"] = Describe(*change.gpu);
  json["changes"] = Describe(change.difference.changes);
  json["effects"] = Describe(change.difference.effects);
  if (!change.placed.empty()) json["placed"] = change.placed;
  if (!change.warnings.empty()) json["warnings"] = change.warnings;
  if (change.round) json["round"] = *change.round;
  for (const auto& [gpu, round] : change.rounds) json["rounds"][gpu] = round;
  json["dry_run"] = !change.round;
  return Finish(json);
}

std::string ToJson(const GpuReport& gpu) { return Finish(Describe(gpu)); }

std::string ToJson(const std::vector<GpuReport>& gpus, size_t waiting) {
  auto list = OrderedJson::array();
  for (const GpuReport& gpu : gpus) list.push_back(Describe(gpu));
  return Finish({{"gpus", list}, {"waiting", waiting}});
}

std::string ToJson(const std::vector<TenantReport>& tenants) {
  auto list = OrderedJson::array(), site = OrderedJson::object();
  for (const TenantReport& tenant : tenants) {
    OrderedJson json;
    if (!tenant.name.empty()) json["name"] = tenant.name;
    auto quota = OrderedJson::object();
    for (const ResourceRow& row : kResourceRows) {
      const std::string field(row.field);
      if (row.together) json[field] = Amount(row, tenant.use[row.resource]);
      if (const auto& most = tenant.quota.together[row.resource]) quota[field] = Amount(row, *most);
      if (const auto& most = tenant.quota.each[row.resource])
        quota[row.together ? fmt::format("{}{}", field, kEachSuffix) : field] = Amount(row, *most);
    }
    json["share"] = Rounded(tenant.share);
    json["quota"] = std::move(quota);
    if (tenant.name.empty())
      site = std::move(json);
    else
      list.push_back(std::move(json));
  }
  return Finish({{"tenants", list}, {"site", site}});
}

std::string ToJson(const Profiles& profiles) {
  auto list = OrderedJson::array();
  for (const Profile& profile : profiles) {
    OrderedJson json{{"name", profile.name}, {"built_in", profile.built_in}};
    if (profile.vram_bytes) json["vram_bytes"] = *profile.vram_bytes;
    if (profile.host_memory_bytes) json["host_memory_bytes"] = *profile.host_memory_bytes;
    for (const KnobValue& given : profile.knobs)
      json[Key(RowOf(given.knob))] = ToJsonValue(ToField(RowOf(given.knob), given.value));
    list.push_back(std::move(json));
  }
  return Finish({{"profiles", list}});
}

}  // namespace vgpud::daemon
