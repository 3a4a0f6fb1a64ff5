// SPDX-License-Identifier: Apache-2.0
// Doors: those who make VFs for others, as many and as large as these ask for. The VFs of a door have names that are
// nobody else's, and a tenant that is there without being configured, so that vgpud bounds what comes of them. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace vgpud::daemon {

struct Door {
  std::string_view prefix;  // of its VFs' names, and of no others
  std::string_view tenant;  // whose its VFs are where nobody says more
  std::string_view whose;   // for errors
};
inline constexpr std::array<Door, 2> kDoors = {{
    {"slurm-", "slurm", "jobs of Slurm"},  // integrations/slurm/common.sh
    {"k8s-", "kubernetes", "Kubernetes"},  // integrations/kubernetes/vfs.h
}};

// Is it what the hook of libvirt calls a VF of a domain that says no other name, like guest-vgpud0?
bool IsNameForDomain(std::string_view vf);
// Null: that of no door.
const Door* DoorOfVf(std::string_view vf);
const Door* DoorOfTenant(std::string_view tenant);
// May users of their own make VFs of this tenant? Not where it is none, or that of a door.
bool HasUsers(std::string_view tenant);
// Whose a new VF of this name is when nobody says so; empty: nobody's.
std::string UsualTenantOf(std::string_view vf);

}  // namespace vgpud::daemon
