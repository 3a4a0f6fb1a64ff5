// SPDX-License-Identifier: Apache-2.0
// What a user of this host may do at the control socket (tenants/users.h), request by request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vgpud/model/api_error.h"
#include "vgpud/model/vf_spec.h"
#include "vgpud/tenants/users.h"

namespace vgpud::daemon {

class Reports;

// Why not, if so. A user of one tenant manages that tenant's VFs and nothing that is of all; a new VF is for CreateVf
// to look at (WhyNotMade).
std::optional<ApiError> WhyNotPermitted(const Rights& rights, bool looks_only, std::string_view path,
                                        const std::string& body, const Reports& reports);
// Why not even that it asks, if so.
std::optional<ApiError> WhyNotLookedAt(const Rights& rights);
// Why not such a new VF, if so. The names of a door (tenants/doors.h) are not for users of other tenants.
std::optional<ApiError> WhyNotMade(const Rights& rights, const VfSpec& spec);
// Why a client may not give a new VF to `owner`, if so: root and vgpud's own user (`privileged`) give it to anybody,
// others to themselves and to groups that they are in. `client`: its connected socket, whose user and groups the kernel
// tells.
std::optional<ApiError> WhyNotOwner(const SocketAccess& owner, bool privileged, int client);
// Why no domain may have this VF, whoever says so: it is a door's.
std::optional<ApiError> WhyNotInDomain(const std::string& vf);

}  // namespace vgpud::daemon
