// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/owner.h"

#include "vgpud/tenants/doors.h"

namespace vgpud::daemon {

std::string OwnerOf(const VfSpec& spec) {
  if (!spec.tenant.empty()) return spec.tenant;
  return spec.user ? Sharer::User(*spec.user).name : std::string();
}

Sharer SharerOf(const VfSpec& spec) {
  if (!spec.tenant.empty()) return Sharer::Tenant(spec.tenant);
  return Sharer{spec.user ? OwnerOf(spec) : "vf " + spec.name};
}

std::string UsersOf(const VfSpec& spec) {
  return spec.tenant.empty() || HasUsers(spec.tenant) ? OwnerOf(spec) : std::string();
}

bool IsUser(std::string_view owner) { return owner.find(' ') != std::string_view::npos; }

}  // namespace vgpud::daemon
