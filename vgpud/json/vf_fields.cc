// SPDX-License-Identifier: Apache-2.0
#include "vgpud/json/vf_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include "sched/knobs.h"
#include "vgpud/model/api.h"
#include "vgpud/model/uuid.h"

namespace vgpud::daemon {
namespace {

constexpr size_t kMaxDomainBytes = 255;
constexpr uint64_t kHighestId = 0xfffffffe;  // of a user or group

uint64_t UsualOfVf(Knob knob) { return KnobOf(VfView{}, knob); }

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

}  // namespace

std::set<std::string> KnobNames(bool per_vf, std::set<std::string> more) {
  for (const KnobRow& row : Knobs())
    if (row.per_vf == per_vf) more.insert(std::string(row.name));
  return more;
}

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

ApiResult<std::vector<KnobValue>> ParseVfKnobs(const Json& object) { return ParseKnobs(object, true, &UsualOfVf); }

ApiResult<uint64_t> ParseVram(const Json& object, uint64_t usual) { return ParseMemory(object, kVram, usual); }
ApiResult<uint64_t> ParseHostMemory(const Json& object, uint64_t usual) {
  return ParseMemory(object, kHostMemory, usual);
}

ApiResult<VfSpec> ParseSpec(const Json& object, const Profile& profile) {
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
  for (const KnobValue& given : TRY(ParseVfKnobs(object))) SetKnob(spec.view, given.knob, given.value);
  spec.vram_bytes = TRY(ParseVram(object, profile.vram_bytes.value_or(control::kDefaultVramBytes)));
  const uint64_t usual_host = control::DefaultHostMemoryBytes(spec.vram_bytes);
  spec.host_memory_bytes = TRY(ParseHostMemory(object, profile.host_memory_bytes.value_or(usual_host)));
  return spec;
}

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

ApiResult<SocketAccess> ParseOwner(const Json& object) {
  const auto id = [&object](const char* field) -> ApiResult<std::optional<uint32_t>> {
    const auto it = object.find(field);
    if (it == object.end()) return std::nullopt;
    if (it->is_number_unsigned() && it->get<uint64_t>() <= kHighestId) return it->get<uint32_t>();
    return ApiFail(
        ErrorKind::kInvalid,
        fmt::format("{} {} is not the number of a user or group: allowed is 0 to {}", field, Quoted(*it), kHighestId),
        field);
  };
  SocketAccess owner;
  owner.user = TRY(id("owner_uid"));
  owner.group = TRY(id("owner_gid"));
  return owner;
}

// Clients print the name: it may not have control characters.
ApiResult<VfDomain> ParseDomain(const Json& object) {
  if (!object.contains("domain") && !object.contains("domain_uuid") && !object.contains("ends_with_domain"))
    return VfDomain{};
  for (const char* field : {"domain", "domain_uuid"})
    if (!object.contains(field))
      return ApiFail(ErrorKind::kInvalid, fmt::format("{} is missing: give domain and domain_uuid, or neither", field),
                     field);
  VfDomain domain;
  domain.name = TRY(ParseText(object, "domain"));
  domain.uuid = TRY(ParseText(object, "domain_uuid"));
  domain.ends_vf = TRY(ParseFlag(object, "ends_with_domain", false));
  const bool has_control_characters = std::any_of(
      domain.name.begin(), domain.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (domain.name.empty() || domain.name.size() > kMaxDomainBytes || has_control_characters)
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

OrderedJson ToJsonValue(const FieldValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return OrderedJson(nullptr);
        else
          return OrderedJson(v);
      },
      value);
}

void PutOwner(const SocketAccess& owner, OrderedJson* json) {
  if (owner.user) (*json)["owner_uid"] = *owner.user;
  if (owner.group) (*json)["owner_gid"] = *owner.group;
}

void PutDomain(const VfDomain& domain, OrderedJson* json) {
  if (domain.name.empty()) return;
  json->update(OrderedJson{{"domain", domain.name}, {"domain_uuid", domain.uuid}});
  if (domain.ends_vf) (*json)["ends_with_domain"] = true;
}

}  // namespace vgpud::daemon
