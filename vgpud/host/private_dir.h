// SPDX-License-Identifier: Apache-2.0
// A directory in which nobody but this user (and root) can put, move or remove anything: where sockets, locks and state
// files are safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.h"

namespace vgpud::daemon {

// Opens `path`; what is missing of it is made with `mode`. Refused (EPERM, with the next step): a directory that
// belongs to another user or that group or others may write; a way to it through directories of other users, or through
// ones that anybody may write without the sticky bit; a link in such places. `what` and `option` ("--runtime-dir") are
// for the error.
[[nodiscard]] Result<UniqueFd> OpenPrivateDir(const std::string& path, mode_t mode, std::string_view what,
                                              std::string_view option);
// Opens or makes the regular file `name` in it, mode 0600, for reading and writing; never through a link, never a file
// of another user or one with a second name.
[[nodiscard]] Result<UniqueFd> OpenPrivateFile(const UniqueFd& directory, const std::string& name);

}  // namespace vgpud::daemon
