// SPDX-License-Identifier: Apache-2.0
// Who answers for what a VF uses. Pure.
#pragma once

#include <string>
#include <string_view>

#include "vgpud/host/shares.h"
#include "vgpud/model/vf_spec.h"

namespace vgpud::daemon {

// Its tenant, or the ordinary user who made it where it has none; empty: root. No tenant has the name of a user.
std::string OwnerOf(const VfSpec& spec);
// The same as one who has shares; each VF of root has its own.
Sharer SharerOf(const VfSpec& spec);
// Ordinary users who make as many VFs as they like, and it is of them: those of its tenant, or one; empty: root's.
std::string UsersOf(const VfSpec& spec);
// Is it a user, and not a tenant?
bool IsUser(std::string_view owner);

}  // namespace vgpud::daemon
