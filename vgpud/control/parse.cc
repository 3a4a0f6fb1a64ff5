// SPDX-License-Identifier: Apache-2.0
// The requests of the control API: JSON bodies become checked values (vgpud/control/json.h).
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "sched/knobs.h"
#include "vgpud/control/api.h"
#include "vgpud/control/json.h"
#include "vgpud/control/json_parts.h"
#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostNode = 1023;  // of NUMA
constexpr int kMaxDepth = 16;         // a request has 3
constexpr size_t kMaxDomainBytes = 255;

std::string Quoted(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// How deep objects and arrays lie within each other in `body`, which need not be JSON. Looked at before it is parsed:
// what is parsed is compared, printed and freed by functions that call themselves once for each level.
int DepthOf(std::string_view body) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_text && c == '\\') ++i;
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

// A JSON object without duplicate keys, in it or in the objects within it.
ApiResult<Json> ParseObject(std::string_view body, const char* what = "the request body") {
  std::vector<std::set<std::string>> seen;  // keys of the object that is open at each depth
  std::string duplicate;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) seen.resize(level);
    if (event != Json::parse_event_t::key) return true;
    seen.resize(level);
    if (!seen.back().insert(parsed.get<std::string>()).second) duplicate = parsed.get<std::string>();
    return true;
  };
  if (body.size() > control::kMaxBodyBytes)
    return ApiFail(ErrorKind::kTooLarge,
                   fmt::format("{} has {} bytes, more than {}", what, body.size(), control::kMaxBodyBytes));
  if (const int depth = DepthOf(body); depth > kMaxDepth)
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} nests {} levels deep, more than {}", what, depth, kMaxDepth));
  Json object;
  try {
    object = Json::parse(body, on_event);
  } catch (const Json::exception& e) {
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("{} is not JSON: {}", what, std::string_view(e.what()).substr(0, 200)));
  }
  if (!object.is_object()) return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be a JSON object", what));
  if (!duplicate.empty())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} is given twice", Quoted(duplicate)), duplicate);
  return object;
}

ApiResult<void> CheckKnown(const Json& object, const std::set<std::string>& known) {
  for (const auto& item : object.items())
    if (known.count(item.key()) == 0) {
      std::string names;
      for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
      return ApiFail(ErrorKind::kInvalid, fmt::format("unknown field {} (known: {})", Quoted(item.key()), names),
                     item.key());
    }
  return {};
}

// The same without unknown keys.
ApiResult<Json> ParseObject(std::string_view body, const std::set<std::string>& known) {
  auto object = ParseObject(body);
  if (!object) return object;
  if (const auto ok = CheckKnown(*object, known); !ok) return tl::unexpected(ok.error());
  return object;
}

std::set<std::string> KnobNames(bool per_vf, std::set<std::string> more) {
  for (const KnobRow& row : Knobs())
    if (row.per_vf == per_vf) more.insert(std::string(row.name));
  return more;
}

// In the unit of the row. Its range is checked as well.
ApiResult<uint64_t> ParseKnob(const KnobRow& row, const Json& value, const std::string& field) {
  const bool part = row.unit == KnobUnit::kPart;
  if (part ? !value.is_number() : !value.is_number_integer())
    return ApiFail(
        ErrorKind::kInvalid,
        fmt::format("{} must be {}, not {}", field, part ? "a number from 0 to 1" : "an integer", Quoted(value)),
        field);
  const double number = value.get<double>();
  const double scaled = part ? std::round(number * kWhole) : number;
  const bool representable = number >= 0 && scaled < 0x1p53 && (scaled != 0 || number == 0);
  const uint64_t given = !representable ? 0 : part ? static_cast<uint64_t>(scaled) : value.get<uint64_t>();
  if (!representable)
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("{} {} is out of range: allowed is {}", field, Quoted(value), AllowedRange(row)), field);
  if (const auto ok = CheckKnob(row.knob, given); !ok) return ApiFail(ErrorKind::kInvalid, ok.error().context, field);
  return given;
}

// All knobs of VFs or of the GPU that `object` gives; `usual` is what null stands for.
ApiResult<std::vector<KnobValue>> ParseKnobs(const Json& object, bool per_vf,
                                             const std::function<uint64_t(Knob)>& usual) {
  std::vector<KnobValue> knobs;
  for (const KnobRow& row : Knobs()) {
    const std::string name(row.name);
    const auto it = object.find(name);
    if (row.per_vf != per_vf || row.knob == Knob::kGroupWeight || it == object.end()) continue;
    if (it->is_null()) {
      knobs.push_back({row.knob, usual(row.knob)});
      continue;
    }
    const auto value = ParseKnob(row, *it, name);
    if (!value) return tl::unexpected(value.error());
    knobs.push_back({row.knob, *value});
  }
  return knobs;
}

uint64_t UsualOfVf(Knob knob) { return KnobOf(VfView{}, knob); }
uint64_t UsualOfGpu(Knob knob) { return KnobOf(DefaultOptions(), knob); }

struct MemoryRow {
  const char* field;
  uint64_t least;
  uint64_t most;
  const char* range;
};
constexpr MemoryRow kVram = {"vram_bytes", control::kMinVramBytes, control::kMaxVramBytes, "1 MiB to 1 TiB"};
constexpr MemoryRow kHostMemory = {"host_memory_bytes", control::kMinHostMemoryBytes, control::kMaxHostMemoryBytes,
                                   "16 MiB to 1 TiB"};

// Of `object`; `usual` when it has none.
ApiResult<uint64_t> ParseMemory(const Json& object, const MemoryRow& row, uint64_t usual) {
  const auto it = object.find(row.field);
  if (it == object.end()) return usual;
  if (!it->is_number_integer())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be an integer, not {}", row.field, Quoted(*it)),
                   row.field);
  const double number = it->get<double>();
  if (number < static_cast<double>(row.least) || number > static_cast<double>(row.most))
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("{} {} is out of range: allowed is {} to {} bytes ({})", row.field, Quoted(*it),
                               row.least, row.most, row.range),
                   row.field);
  return it->get<uint64_t>();
}

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

// Name, memory and knobs. What `object` does not have is as in `profile`.
ApiResult<VfSpec> SpecOf(const Json& object, const Profile& profile = {}) {
  VfSpec spec;
  spec.profile = profile.name;
  const auto name = object.find("name");
  if (name == object.end()) return ApiFail(ErrorKind::kInvalid, "name is missing", "name");
  if (!name->is_string() || !control::IsValidName(name->get_ref<const std::string&>()))
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("name {} is not usable: 1 to {} characters a-z, 0-9 and -, the first not -",
                               Quoted(*name), control::kMaxNameBytes),
                   "name");
  spec.name = name->get<std::string>();
  for (const KnobValue& usual : profile.knobs) SetKnob(spec.view, usual.knob, usual.value);
  for (const KnobValue& given : TRY(ParseKnobs(object, true, UsualOfVf))) SetKnob(spec.view, given.knob, given.value);
  spec.vram_bytes = TRY(ParseMemory(object, kVram, profile.vram_bytes.value_or(control::kDefaultVramBytes)));
  const uint64_t usual_host = control::DefaultHostMemoryBytes(spec.vram_bytes);
  spec.host_memory_bytes = TRY(ParseMemory(object, kHostMemory, profile.host_memory_bytes.value_or(usual_host)));
  return spec;
}

ApiResult<bool> ParseFlag(const Json& object, const char* field, bool usual) {
  const auto it = object.find(field);
  if (it == object.end()) return usual;
  if (!it->is_boolean())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be true or false, not {}", field, Quoted(*it)), field);
  return it->get<bool>();
}

ApiResult<std::string> ParseText(const Json& object, const char* field) {
  const Json& value = object[field];
  if (!value.is_string())
    return ApiFail(ErrorKind::kInvalid, fmt::format("{} must be text, not {}", field, Quoted(value)), field);
  return value.get<std::string>();
}

// `usual`, where it says nothing.
ApiResult<std::string> ParseTenant(const Json& object, const std::string& usual) {
  if (!object.contains("tenant")) return usual;
  const std::string name = TRY(ParseText(object, "tenant"));
  if (!control::IsValidName(name))
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("tenant {} is not usable: 1 to {} characters a-z, 0-9 and -, the first not -",
                               Quoted(object["tenant"]), control::kMaxNameBytes),
                   "tenant");
  return name;
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

// Of a domain of libvirt; nothing: `object` has none. What is shown somewhere may not draw there.
ApiResult<VfDomain> DomainOf(const Json& object) {
  if (!object.contains("domain") && !object.contains("domain_uuid") && !object.contains("ends_with_domain"))
    return VfDomain{};
  for (const char* field : {"domain", "domain_uuid"})
    if (!object.contains(field))
      return ApiFail(ErrorKind::kInvalid, fmt::format("{} is missing: give domain and domain_uuid, or neither", field),
                     field);
  VfDomain domain{TRY(ParseText(object, "domain")), TRY(ParseText(object, "domain_uuid")),
                  TRY(ParseFlag(object, "ends_with_domain", false))};
  const bool draws = std::any_of(domain.name.begin(), domain.name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (domain.name.empty() || domain.name.size() > kMaxDomainBytes || draws)
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("domain {} is not usable: 1 to {} bytes without control characters",
                               Quoted(object["domain"]), kMaxDomainBytes),
                   "domain");
  const auto uuid = UuidFromText(domain.uuid);
  if (!uuid)
    return ApiFail(ErrorKind::kInvalid, fmt::format("domain_uuid {} is none", Quoted(object["domain_uuid"])),
                   "domain_uuid");
  domain.uuid = ToText(*uuid);
  return domain;
}

// Beside the knobs. Knobs that are not there have their default: an older vgpud did not know them.
const std::set<std::string> kDefinitionFields = {
    "version", "name", "uuid", "number", "paused", "vram_bytes", "host_memory_bytes", "vfio_user_socket"};

}  // namespace

ApiResult<VfSpec> ParseVfSpec(std::string_view body, const Profiles& profiles, const std::string& tenant) {
  const Json object = TRY(ParseObject(
      body, KnobNames(true, {"name", "profile", "vram_bytes", "host_memory_bytes", "paused", "transient", "gpu",
                             "placement", "numa_node", "domain", "domain_uuid", "ends_with_domain", "tenant"})));
  Profile profile;
  if (object.contains("profile")) {
    const auto found = FindProfile(profiles, TRY(ParseText(object, "profile")));
    if (!found) return ApiFail(ErrorKind::kInvalid, found.error().context, "profile");
    profile = **found;
  }
  VfSpec spec = TRY(SpecOf(object, profile));
  spec.view.paused = TRY(ParseFlag(object, "paused", false));
  spec.transient = TRY(ParseFlag(object, "transient", false));
  spec.domain = TRY(DomainOf(object));
  spec.transient |= spec.domain.ends_vf;
  spec.tenant = TRY(ParseTenant(object, tenant.empty() ? UsualTenantOf(spec.name) : tenant));
  TRY(ParsePlace(object, &spec));
  return spec;
}

ApiResult<VfWish> ParseVfWish(const std::string& body, const Profiles& profiles, const std::string& tenant) {
  VfWish wish{TRY(ParseVfSpec(body, profiles, tenant)), {}};
  wish.on = [body, tenant](const Profiles& there) { return ParseVfSpec(body, there, tenant); };
  return wish;
}

ApiResult<VfDomain> ParseVfDomain(std::string_view body) {
  const Json object = TRY(ParseObject(body, std::set<std::string>{"domain", "domain_uuid"}));
  VfDomain domain = TRY(DomainOf(object));
  if (domain.name.empty()) return ApiFail(ErrorKind::kInvalid, "domain is missing", "domain");
  return domain;
}

ApiResult<VfDefinition> ParseDefinition(std::string_view text) {
  const Json object = TRY(ParseObject(text, "it"));
  if (const auto version = object.find("version"); version == object.end() || *version != kDefinitionVersion)
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("version {} is unknown, this vgpud knows {}",
                               version == object.end() ? "(missing)" : Quoted(*version), kDefinitionVersion),
                   "version");
  auto known = KnobNames(true, kDefinitionFields);
  known.insert({"profile", "tenant", "gpu", "domain", "domain_uuid", "ends_with_domain"});
  TRY(CheckKnown(object, known));
  for (const std::string& field : kDefinitionFields)
    if (!object.contains(field)) return ApiFail(ErrorKind::kInvalid, fmt::format("{} is missing", field), field);
  VfDefinition definition;
  definition.spec = TRY(SpecOf(object));
  definition.spec.view.paused = TRY(ParseFlag(object, "paused", false));
  const auto uuid = UuidFromText(TRY(ParseText(object, "uuid")));
  if (!uuid) return ApiFail(ErrorKind::kInvalid, fmt::format("uuid {} is none", Quoted(object["uuid"])), "uuid");
  definition.uuid = *uuid;
  const Json& number = object["number"];
  if (!number.is_number_unsigned() || number.get<uint64_t>() >= control::kMaxVfs)
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("number {} is out of range: allowed is 0 to {}", Quoted(number), control::kMaxVfs - 1),
                   "number");
  definition.number = number.get<uint32_t>();
  if (object.contains("gpu")) definition.spec.gpu = TRY(ParseText(object, "gpu"));
  definition.spec.tenant = TRY(ParseTenant(object, UsualTenantOf(definition.spec.name)));
  if (object.contains("profile")) definition.spec.profile = TRY(ParseText(object, "profile"));
  definition.spec.domain = TRY(DomainOf(object));
  definition.spec.transient = definition.spec.domain.ends_vf;
  definition.vfio_user_socket = TRY(ParseText(object, "vfio_user_socket"));
  return definition;
}

namespace {

ApiResult<VfPatch> VfPatchOf(const Json& object) {
  if (const auto ok = CheckKnown(object, KnobNames(true, {"paused"})); !ok) return tl::unexpected(ok.error());
  if (object.empty())
    return ApiFail(ErrorKind::kInvalid, "nothing to change: give a knob, like weight or slice_us, or paused");
  VfPatch patch;
  auto knobs = ParseKnobs(object, true, UsualOfVf);
  if (!knobs) return tl::unexpected(knobs.error());
  patch.knobs = std::move(*knobs);
  if (object.contains("paused")) patch.paused = TRY(ParseFlag(object, "paused", false));
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
