// SPDX-License-Identifier: Apache-2.0
// The access list of a Unix socket's file (acl(5)). The file's owner may write it without any capability; chown(2)
// needs CAP_CHOWN, which vgpud gives up. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "vgpud/model/socket_access.h"

namespace vgpud::daemon {

// Lets `allowed` connect to the socket at `path`, besides those whom the mode of the file lets in, and nobody of an
// earlier access list. Does nothing if `allowed` names nobody, or only the owner of the file. Error: the caller does
// not own the file, or its file system has no access lists.
[[nodiscard]] Result<void> LetIn(const std::string& path, const SocketAccess& allowed);

// The group whose members may connect to the socket at `path`: that of the access list, else that of the file. Nothing:
// no group may, or it cannot be seen.
[[nodiscard]] std::optional<gid_t> GroupLetIn(const std::string& path);

}  // namespace vgpud::daemon
