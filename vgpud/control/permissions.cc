// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/permissions.h"

#include <fmt/core.h>

#include "vgpud/control/json.h"
#include "vgpud/registry/reports.h"
#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {
namespace {

constexpr std::string_view kVfs = "/v1/vfs";
constexpr std::string_view kSettings = "/v1/settings";

ApiError Forbidden(const Rights& rights, std::string_view what) {
  return {ErrorKind::kForbidden,
          fmt::format("user {} may not {} (docs/tenants.md); ask who administers this host", rights.user, what),
          {}};
}

std::optional<ApiError> WhyNotTenant(const Rights& rights, const std::string& tenant) {
  if (rights.tenant.empty() || rights.tenant == tenant) return std::nullopt;
  return Forbidden(rights, fmt::format("change VFs but those of tenant {}", rights.tenant));
}

std::optional<ApiError> WhyNotVf(const Rights& rights, const std::string& name, const Reports& reports) {
  const auto vf = reports.OfVf(name);
  return vf ? WhyNotTenant(rights, vf->tenant) : std::nullopt;
}

}  // namespace

std::optional<ApiError> WhyNotLookedAt(const Rights& rights) {
  return rights.may == May::kNothing ? std::optional(Forbidden(rights, "use this vgpud")) : std::nullopt;
}

std::optional<ApiError> WhyNotInDomain(const std::string& vf) {
  const Door* const door = DoorOfVf(vf);
  if (door == nullptr) return std::nullopt;
  return ApiError{
      ErrorKind::kConflict,
      fmt::format("vf \"{}\" can't be a domain's: VFs whose names begin with {} are for {}; give the domain "
                  "one of another name",
                  vf, door->prefix, door->whose),
      "domain"};
}

std::optional<ApiError> WhyNotMade(const Rights& rights, const VfSpec& spec) {
  if (auto why_not = WhyNotTenant(rights, spec.tenant)) return why_not;
  if (!rights.tenant.empty() && IsNameForDomain(spec.name))
    return Forbidden(rights, fmt::format("make a VF called {}: such names are for domains of libvirt, whose hook makes "
                                         "their VFs; take another name",
                                         spec.name));
  const Door* const door = DoorOfVf(spec.name);
  if (door == nullptr) return std::nullopt;
  if (!rights.tenant.empty() && rights.tenant != door->tenant)
    return Forbidden(rights, fmt::format("make a VF called {}: names that begin with {} are for {}", spec.name,
                                         door->prefix, door->whose));
  return spec.domain.name.empty() ? std::nullopt : WhyNotInDomain(spec.name);
}

std::optional<ApiError> WhyNotPermitted(const Rights& rights, bool looks_only, std::string_view path,
                                        const std::string& body, const Reports& reports) {
  if (auto why_not = WhyNotLookedAt(rights)) return why_not;
  if (looks_only) return std::nullopt;
  if (rights.may != May::kManage) return Forbidden(rights, "change anything, only look");
  if (rights.tenant.empty() || path == kVfs) return std::nullopt;
  if (path.starts_with(kVfs)) {
    const std::string_view rest = path.substr(kVfs.size() + 1);
    return WhyNotVf(rights, std::string(rest.substr(0, rest.find('/'))), reports);
  }
  const auto patch = path == kSettings ? ParseSettingsPatch(body) : ApiResult<SettingsPatch>(SettingsPatch{});
  if (path != kSettings || (patch && (patch->gpu || !patch->gpus.empty())))
    return Forbidden(rights, fmt::format("change what is of all, only VFs of tenant {}", rights.tenant));
  if (!patch) return std::nullopt;  // it says itself what is wrong
  for (const auto& [name, vf] : patch->vfs)
    if (auto why_not = WhyNotVf(rights, name, reports)) return why_not;
  return std::nullopt;
}

}  // namespace vgpud::daemon
