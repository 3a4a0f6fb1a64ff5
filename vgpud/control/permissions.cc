// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/permissions.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "vgpud/control/json.h"
#include "vgpud/host/shares.h"
#include "vgpud/registry/reports.h"
#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {
namespace {

constexpr std::string_view kVfs = "/v1/vfs";
constexpr std::string_view kSettings = "/v1/settings";
constexpr size_t kMostGroups = 65536;  // of a process: NGROUPS_MAX

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

bool IsInGroup(int client, gid_t group) {
  ucred peer{.pid = 0, .uid = 0, .gid = 0};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  if (peer.gid == group) return true;
  std::vector<gid_t> groups(kMostGroups);
  bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(client, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0) return false;
  groups.resize(bytes / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
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

std::optional<ApiError> WhyNotOwner(const SocketAccess& owner, bool privileged, int client) {
  if (privileged || !owner.anybody()) return std::nullopt;
  const uid_t user = Sharer::UserOf(client);
  const auto refuse = [user](const char* kind, uint32_t number, const char* field) {
    return ApiError{ErrorKind::kForbidden,
                    fmt::format("user {} may not give a VF to {} {}: only to himself and to groups that he is in; ask "
                                "who administers this host",
                                user, kind, number),
                    field};
  };
  if (owner.user && *owner.user != user) return refuse("user", *owner.user, "owner_uid");
  if (owner.group && !IsInGroup(client, *owner.group)) return refuse("group", *owner.group, "owner_gid");
  return std::nullopt;
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
