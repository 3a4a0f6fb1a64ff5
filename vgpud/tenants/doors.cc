// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/doors.h"

#include <algorithm>

namespace vgpud::daemon {
namespace {

constexpr std::string_view kDomainVf = "-vgpud";  // tools/libvirt/hostdev.h

template <class Is>
const Door* Find(Is is) {
  const auto found = std::find_if(kDoors.begin(), kDoors.end(), is);
  return found == kDoors.end() ? nullptr : &*found;
}

}  // namespace

bool IsNameForDomain(std::string_view vf) {
  const size_t end = vf.find_last_not_of("0123456789");
  return end != std::string_view::npos && end + 1 < vf.size() && vf.substr(0, end + 1).ends_with(kDomainVf);
}

const Door* DoorOfVf(std::string_view vf) {
  return Find([&](const Door& door) { return vf.starts_with(door.prefix); });
}

const Door* DoorOfTenant(std::string_view tenant) {
  return Find([&](const Door& door) { return door.tenant == tenant; });
}

bool HasUsers(std::string_view tenant) { return !tenant.empty() && DoorOfTenant(tenant) == nullptr; }

std::string UsualTenantOf(std::string_view vf) {
  const Door* const door = DoorOfVf(vf);
  return std::string(door == nullptr ? "" : door->tenant);
}

}  // namespace vgpud::daemon
