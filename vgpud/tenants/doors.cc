// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/doors.h"

#include <algorithm>

namespace vgpud::daemon {
namespace {

template <class Is>
const Door* Find(Is is) {
  const auto found = std::find_if(kDoors.begin(), kDoors.end(), is);
  return found == kDoors.end() ? nullptr : &*found;
}

}  // namespace

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
