// SPDX-License-Identifier: Apache-2.0
// Who may connect to a Unix socket of vgpud, besides root and vgpud's own user.
#pragma once

#include <sys/types.h>

#include <optional>

namespace vgpud::daemon {

// By number: to look up a name may mean to wait for a directory service, which vgpud's main thread never does.
struct SocketAccess {
  std::optional<uid_t> user;
  std::optional<gid_t> group;
  bool anybody() const { return user || group; }
  bool operator==(const SocketAccess&) const = default;
};

}  // namespace vgpud::daemon
