// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace vgpud::daemon {

// A listening Unix socket at `path`, for the owner and, run by root, the group vgpu.
[[nodiscard]] Result<UniqueFd> ListenForClients(const std::string& path);

// A listening socket at `address` (ADDRESS:PORT), for --metrics-listen, which errors name.
[[nodiscard]] Result<UniqueFd> ListenTcp(const std::string& address);

}  // namespace vgpud::daemon
