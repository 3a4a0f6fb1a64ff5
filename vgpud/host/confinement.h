// SPDX-License-Identifier: Apache-2.0
// What of docs/security.md this host lets vgpud do for the processes of its VFs: found out once, at start, by doing it.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/jail/confine.h"
#include "base/result.h"
#include "vgpud/model/protection.h"

namespace vgpud::daemon {

struct VfConfinement {
  Confinement kind = Confinement::kNothing;
  bool watch = false;  // jails are watched: the call that ended a process is known, guest memory is handed out exactly
  bool own_users = false;      // each VF has a user of its own, ...
  uid_t first_user = 0;        // ... counting from this one
  std::string why_not_better;  // empty: nothing is missing
  uid_t UserOf(VfId vf) const { return own_users ? first_user + Raw(vf) : ::geteuid(); }
  // What to tell vgpud-vf and vgpud-exec of that VF on their command lines.
  std::vector<std::string> ArgumentsFor(VfId vf) const;
};

// Tries with `exec_program` (vgpud-exec) what works, best first. `first_user`: of the range for VFs, used by root only.
// An error: not even the program runs.
[[nodiscard]] Result<VfConfinement> FindConfinement(const std::string& exec_program, uid_t first_user);
Protections ProtectionsOf(const VfConfinement& confinement);

// Gives up the capabilities that vgpud has no use for; before other threads exist. `confinement`: what its VFs need.
// `low_port`: it will listen on a port below 1024.
[[nodiscard]] Result<void> GiveUpCapabilities(const VfConfinement& confinement, bool low_port);

}  // namespace vgpud::daemon
