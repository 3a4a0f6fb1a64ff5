// SPDX-License-Identifier: Apache-2.0
// The requests of the control API: JSON bodies become checked values (vgpud/control/json.h).
#include <fmt/core.h>

#include <charconv>
#include <memory>
#include <set>

#include "sched/knobs.h"
#include "vgpud/control/json.h"
#include "vgpud/json/fields.h"
#include "vgpud/json/vf_fields.h"
#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kMostNode = 1023;  // of NUMA

uint64_t UsualOfGpu(Knob knob) { return KnobOf(DefaultOptions(), knob); }

// {"GROUP": WEIGHT or null, ...}
ApiResult<std::vector<std::pair<uint8_t, uint32_t>>> ParseGroupWeights(const Json& object) {
  const KnobRow& row = RowOf(Knob::kGroupWeight);
  const std::string name(row.name);
  if (!object.is_object() || object.empty())
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("{} must be an object like {{\"3\": 200}}, not {}", name, Quoted(object)), name);
  std::vector<std::pair<uint8_t, uint32_t>> weights;
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    uint64_t group = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), group);
    if (error != std::errc{} || end != key.data() + key.size() || (key.size() > 1 && key[0] == '0'))
      return ApiFail(ErrorKind::kInvalid,
                     fmt::format("{}: {} is not the number of a group: write it in digits, without zeros before it",
                                 name, Quoted(key)),
                     name);
    if (const auto ok = CheckKnob(Knob::kGroup, group); !ok)
      return ApiFail(ErrorKind::kInvalid, ok.error().context, name);
    ApiResult<uint64_t> weight = uint64_t{kDefaultWeight};
    if (!item.value().is_null()) weight = ParseKnob(row, item.value(), name);
    if (!weight) return tl::unexpected(weight.error());
    weights.emplace_back(static_cast<uint8_t>(group), static_cast<uint32_t>(*weight));
  }
  return weights;
}

// Where it is to go: on one GPU, or by a placement.
ApiResult<void> ParsePlace(const Json& object, VfSpec* spec) {
  if (object.contains("gpu")) spec->gpu = TRY(ParseText(object, "gpu"));
  if (object.contains("placement")) {
    if (!spec->gpu.empty())
      return ApiFail(ErrorKind::kInvalid, "gpu and placement are two ways to say where: give one of them", "placement");
    const auto placement = FindPlacement(TRY(ParseText(object, "placement")));
    if (!placement) return ApiFail(ErrorKind::kInvalid, placement.error().context, "placement");
    spec->placement = *placement;
  }
  if (const auto node = object.find("numa_node"); node != object.end()) {
    if (!node->is_number_unsigned() || node->get<uint64_t>() > kMostNode)
      return ApiFail(ErrorKind::kInvalid,
                     fmt::format("numa_node {} is out of range: allowed is 0 to {}", Quoted(*node), kMostNode),
                     "numa_node");
    spec->numa_node = node->get<int>();
  }
  return {};
}

ApiResult<Json> ParseNewVf(std::string_view body) {
  return ParseObject(body, KnobNames(true, {"name", "profile", "vram_bytes", "host_memory_bytes", "paused", "transient",
                                            "gpu", "placement", "numa_node", "domain", "domain_uuid",
                                            "ends_with_domain", "tenant", "owner_uid", "owner_gid"}));
}

ApiResult<VfSpec> VfSpecOf(const Json& object, const Profiles& profiles, const std::string& tenant) {
  Profile profile;
  if (object.contains("profile")) {
    const auto found = FindProfile(profiles, TRY(ParseText(object, "profile")));
    if (!found) return ApiFail(ErrorKind::kInvalid, found.error().context, "profile");
    profile = **found;
  }
  VfSpec spec = TRY(ParseSpec(object, profile));
  spec.view.paused = TRY(ParseFlag(object, "paused", false));
  spec.transient = TRY(ParseFlag(object, "transient", false));
  spec.domain = TRY(ParseDomain(object));
  spec.transient |= spec.domain.ends_vf;
  spec.owner = TRY(ParseOwner(object));
  spec.tenant = TRY(ParseTenant(object, tenant.empty() ? UsualTenantOf(spec.name) : tenant));
  TRY(ParsePlace(object, &spec));
  return spec;
}

}  // namespace

ApiResult<VfSpec> ParseVfSpec(std::string_view body, const Profiles& profiles, const std::string& tenant) {
  return VfSpecOf(TRY(ParseNewVf(body)), profiles, tenant);
}

// Read once: one that waits is asked again and again, and however long its body was, that costs the same.
ApiResult<VfWish> ParseVfWish(const std::string& body, const Profiles& profiles, const std::string& tenant) {
  const auto object = std::make_shared<const Json>(TRY(ParseNewVf(body)));
  VfWish wish{TRY(VfSpecOf(*object, profiles, tenant)), {}};
  wish.on = [object, tenant](const Profiles& there) { return VfSpecOf(*object, there, tenant); };
  return wish;
}

ApiResult<VfDomain> ParseVfDomain(std::string_view body) {
  const Json object = TRY(ParseObject(body, std::set<std::string>{"domain", "domain_uuid"}));
  VfDomain domain = TRY(ParseDomain(object));
  if (domain.name.empty()) return ApiFail(ErrorKind::kInvalid, "domain is missing", "domain");
  return domain;
}

namespace {

ApiResult<VfPatch> VfPatchOf(const Json& object) {
  if (const auto ok = CheckKnown(object, KnobNames(true, {"paused", "vram_bytes", "host_memory_bytes"})); !ok)
    return tl::unexpected(ok.error());
  if (object.empty())
    return ApiFail(ErrorKind::kInvalid,
                   "nothing to change: give a knob, like weight or slice_us, vram_bytes, host_memory_bytes or paused");
  VfPatch patch;
  auto knobs = ParseVfKnobs(object);
  if (!knobs) return tl::unexpected(knobs.error());
  patch.knobs = std::move(*knobs);
  if (object.contains("paused")) patch.paused = TRY(ParseFlag(object, "paused", false));
  if (object.contains("vram_bytes")) patch.vram_bytes = TRY(ParseVram(object, 0));
  if (object.contains("host_memory_bytes")) patch.host_memory_bytes = TRY(ParseHostMemory(object, 0));
  return patch;
}

ApiResult<GpuPatch> GpuPatchOf(const Json& object) {
  if (const auto ok = CheckKnown(object, KnobNames(false, {"policy", "idle"})); !ok) return tl::unexpected(ok.error());
  if (object.empty())
    return ApiFail(ErrorKind::kInvalid, "nothing to change: give policy, idle or a knob, like base_slice_us");
  GpuPatch patch;
  if (const auto it = object.find("policy"); it != object.end()) {
    const auto row = it->is_string() ? FindPolicy(it->get_ref<const std::string&>())
                                     : Fail(std::errc::invalid_argument, "policy must be a name");
    if (!row) return ApiFail(ErrorKind::kInvalid, row.error().context, "policy");
    patch.policy = std::string((*row)->name);
  }
  if (const auto it = object.find("idle"); it != object.end()) {
    for (const WhenIdle idle : {WhenIdle::kYield, WhenIdle::kHold})
      if (*it == NameOf(idle)) patch.idle = idle;
    if (!patch.idle)
      return ApiFail(ErrorKind::kInvalid, fmt::format("idle {} is unknown: allowed is yield or hold", Quoted(*it)),
                     "idle");
  }
  auto knobs = ParseKnobs(object, false, UsualOfGpu);
  if (!knobs) return tl::unexpected(knobs.error());
  patch.knobs = std::move(*knobs);
  if (const auto it = object.find(std::string(RowOf(Knob::kGroupWeight).name)); it != object.end()) {
    auto weights = ParseGroupWeights(*it);
    if (!weights) return tl::unexpected(weights.error());
    patch.group_weights = std::move(*weights);
  }
  return patch;
}

template <class Patch>
ApiResult<Patch> ParsePatch(std::string_view body, ApiResult<Patch> (*patch_of)(const Json&)) {
  const auto object = ParseObject(body);
  return object ? patch_of(*object) : ApiResult<Patch>(tl::unexpected(object.error()));
}

// A part of a larger request: the error says of which.
ApiError Within(const std::string& part, ApiError error) {
  error.error = fmt::format("{}: {}", part, error.error);
  return error;
}

// {NAME: what to change, ...}
template <class Patch>
ApiResult<std::vector<std::pair<std::string, Patch>>> ParseEach(const Json& object, const std::string& part,
                                                                ApiResult<Patch> (*patch_of)(const Json&)) {
  std::vector<std::pair<std::string, Patch>> all;
  const auto named = object.find(part);
  if (named == object.end()) return all;
  for (const auto& [name, value] : named->items()) {
    if (!value.is_object())
      return ApiFail(ErrorKind::kInvalid,
                     fmt::format("{}: {} must be an object with something to change in it, not {}", part, Quoted(name),
                                 Quoted(value)),
                     part);
    auto patch = patch_of(value);
    if (!patch)
      return tl::unexpected(Within(fmt::format("{} {}", part.substr(0, part.size() - 1), Quoted(name)), patch.error()));
    all.emplace_back(name, std::move(*patch));
  }
  return all;
}

}  // namespace

ApiResult<VfPatch> ParseVfPatch(std::string_view body) { return ParsePatch(body, &VfPatchOf); }
ApiResult<GpuPatch> ParseGpuPatch(std::string_view body) { return ParsePatch(body, &GpuPatchOf); }

ApiResult<SettingsPatch> ParseSettingsPatch(std::string_view body) {
  const auto object = ParseObject(body, {"gpu", "gpus", "vfs"});
  if (!object) return tl::unexpected(object.error());
  if (object->empty()) return ApiFail(ErrorKind::kInvalid, "nothing to change: give gpu, gpus, vfs or several of them");
  SettingsPatch settings;
  for (const auto& [part, value] : object->items())
    if (!value.is_object() || value.empty())
      return ApiFail(ErrorKind::kInvalid,
                     fmt::format("{} must be an object with something to change in it, not {}", part, Quoted(value)),
                     part);
  if (const auto gpu = object->find("gpu"); gpu != object->end()) {
    auto patch = GpuPatchOf(*gpu);
    if (!patch) return tl::unexpected(Within("gpu", patch.error()));
    settings.gpu = std::move(*patch);
  }
  settings.gpus = TRY(ParseEach(*object, "gpus", &GpuPatchOf));
  settings.vfs = TRY(ParseEach(*object, "vfs", &VfPatchOf));
  return settings;
}

}  // namespace vgpud::daemon
