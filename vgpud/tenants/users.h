// SPDX-License-Identifier: Apache-2.0
// Who may do what at the control socket: users of this host, by the kernel's word for who connects.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::daemon {

enum class May : uint8_t { kNothing, kLook, kManage };
std::string_view NameOf(May may);
// The error lists what there is.
[[nodiscard]] Result<May> FindMay(std::string_view name);

// A name of this host, or a number. Main thread, while vgpud reads its configuration: it may wait for a directory
// service.
[[nodiscard]] Result<gid_t> FindGroup(const std::string& name);

struct User {
  std::string name;  // as it was given: a name of this host, or a number
  uid_t uid = 0;
  std::optional<May> may;
  std::string tenant;  // manages VFs of this one only; empty: everything
};
using Users = std::vector<User>;

// "alice.may=manage", "1000.tenant=team-a": one key of one user, whom `users` gets if it has him not. An error if this
// host knows no such user.
[[nodiscard]] Result<void> SetInUsers(Users* users, std::string_view setting);
std::vector<std::string> UserKeys();

struct Access {
  Users users;
  May others = May::kManage;  // who is not named and can open the socket
};
// Does each user say what he may, each once? `tenants`: the names there are.
[[nodiscard]] Result<void> CheckAccess(const Access& access, const std::vector<std::string>& tenants);

struct Rights {
  May may = May::kManage;
  std::string tenant;     // of whose VFs alone; empty: of all
  std::string user = {};  // for errors
};
// Of the client whose user it is. Root and the daemon's own user (`own`) may everything, so that nobody is locked out.
Rights RightsOf(const Access& access, uid_t client, uid_t own);

}  // namespace vgpud::daemon
