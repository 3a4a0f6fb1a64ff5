// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/definition_text.h"

#include <fmt/core.h>

#include <limits>
#include <set>

#include "sched/knobs.h"
#include "vgpud/json/vf_fields.h"
#include "vgpud/model/api.h"
#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kDefinitionVersion = 1;

// Beside the knobs. Knobs that are not there have their default: an older vgpud did not know them.
const std::set<std::string> kDefinitionFields = {
    "version", "name", "uuid", "number", "paused", "vram_bytes", "host_memory_bytes", "vfio_user_socket"};

}  // namespace

std::string ToText(const VfDefinition& definition) {
  const VfSpec& spec = definition.spec;
  OrderedJson json{{"version", kDefinitionVersion},
                   {"name", spec.name},
                   {"uuid", ToText(definition.uuid)},
                   {"number", definition.number},
                   {"paused", spec.view.paused},
                   {"vram_bytes", spec.vram_bytes},
                   {"host_memory_bytes", spec.host_memory_bytes},
                   {"vfio_user_socket", definition.vfio_user_socket}};
  // An older vgpud has one GPU only and does not know the key.
  if (!spec.gpu.empty() && spec.gpu != kUnnamedGpu) json["gpu"] = spec.gpu;
  if (!spec.profile.empty()) json["profile"] = spec.profile;
  if (!spec.tenant.empty()) json["tenant"] = spec.tenant;
  if (spec.user) json["user"] = *spec.user;
  PutDomain(spec.domain, &json);
  PutOwner(spec.owner, &json);
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    const uint64_t value = KnobOf(spec.view, row.knob);
    json[std::string(row.name)] = CheckKnob(row.knob, value) ? ToJsonValue(ToField(row, value)) : OrderedJson(nullptr);
  }
  return json.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

ApiResult<VfDefinition> ParseDefinition(std::string_view text) {
  const Json object = TRY(ParseObject(text, "it"));
  if (const auto version = object.find("version"); version == object.end() || *version != kDefinitionVersion)
    return ApiFail(ErrorKind::kInvalid,
                   fmt::format("version {} is unknown, this vgpud knows {}",
                               version == object.end() ? "(missing)" : Quoted(*version), kDefinitionVersion),
                   "version");
  auto known = KnobNames(true, kDefinitionFields);
  known.insert(
      {"profile", "tenant", "user", "gpu", "domain", "domain_uuid", "ends_with_domain", "owner_uid", "owner_gid"});
  TRY(CheckKnown(object, known));
  for (const std::string& field : kDefinitionFields)
    if (!object.contains(field)) return ApiFail(ErrorKind::kInvalid, fmt::format("{} is missing", field), field);
  VfDefinition definition;
  definition.spec = TRY(ParseSpec(object));
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
  if (const auto user = object.find("user"); user != object.end()) {
    if (!user->is_number_unsigned() || user->get<uint64_t>() > std::numeric_limits<uid_t>::max())
      return ApiFail(ErrorKind::kInvalid, fmt::format("user {} is not the number of a user", Quoted(*user)), "user");
    definition.spec.user = user->get<uid_t>();
  }
  if (object.contains("profile")) definition.spec.profile = TRY(ParseText(object, "profile"));
  definition.spec.domain = TRY(ParseDomain(object));
  definition.spec.owner = TRY(ParseOwner(object));
  definition.spec.transient = definition.spec.domain.ends_vf;
  definition.vfio_user_socket = TRY(ParseText(object, "vfio_user_socket"));
  return definition;
}

}  // namespace vgpud::daemon
