// SPDX-License-Identifier: Apache-2.0
// Landlock of Linux (5.13 and later): which files a process may open, where it has no root of its own.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace vgpud {

// False: this kernel has none, it is switched off, or something around this process forbids it.
bool HasLandlock();

// From now on this thread, and every one that it starts, opens nothing but what is at or below `readable`, to read, and
// `writable`, to read and write; paths that there are not are left out. What is open stays open; ioctl is left to the
// jail. For good, and each call takes more away. The thread must have no_new_privs. An error: nothing has changed.
[[nodiscard]] Result<void> RestrictFiles(std::span<const std::string> readable, std::span<const std::string> writable);

}  // namespace vgpud
