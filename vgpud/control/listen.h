// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace vgpud::daemon {

// Clients that may wait in the kernel until the loop comes round: as many as a crowd of users may send at a time, and
// few enough to be let in, or refused, within some hundredths of a second.
inline constexpr int kBacklog = 1024;

// A listening Unix socket at `path`, for the owner and the group of the file.
[[nodiscard]] Result<UniqueFd> ListenForClients(const std::string& path);

// A listening socket at `address` (ADDRESS:PORT), for --metrics-listen, which errors name.
[[nodiscard]] Result<UniqueFd> ListenTcp(const std::string& address);

}  // namespace vgpud::daemon
