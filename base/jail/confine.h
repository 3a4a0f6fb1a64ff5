// SPDX-License-Identifier: Apache-2.0
// What a process that faces a guest gives up of its own accord before it looks at the first byte of the guest: the file
// system, its user, its capabilities. The namespaces it has been started in (vgpud/host/child.h); the jail
// (base/jail/jail.h) comes after.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud {

// What the host gives to the processes of a VF. Ordered: each is weaker than the one before.
enum class Confinement : uint8_t {
  kUserNamespace,  // namespaces of every kind, a user of its own (as root) behind a user namespace, an empty root
  kNamespaces,     // as root where there are no user namespaces: the others, and the user
  kUserOnly,       // as root where there are no namespaces at all: the user
  kNothing,        // an ordinary user where there are no user namespaces: capabilities and the jail alone
};
inline constexpr const char* kConfinementNames[] = {"user-namespace", "namespaces", "user-only", "nothing"};
std::optional<Confinement> ParseConfinement(std::string_view name);

// Before a process loads somebody else's driver from `library` (a path; empty, or a name without one: the system's):
// where it has namespaces it gets a /proc of its own, in which its threads have the numbers that they know; where it
// has none, it may open no file from now on but the system's programs and libraries and what is in /proc and /sys, to
// read, and devices of NVIDIA's (Landlock). Each is left out where this host does not allow it; vgpud shows that as a
// protection that is not in force (driver-files).
void PrepareForDriver(Confinement kind, const std::string& library);

// Enters the confinement that vgpud has prepared. `user`: the user and group to become, for those kinds in which vgpud
// could not do it. Afterwards there are no capabilities, no files but the open ones (kUserNamespace, kNamespaces), no
// core dumps and no new privileges. `keep`: files, like a driver's devices, that stay where they are in the otherwise
// empty root; those that there are not are left out. Without namespaces they are what this thread and those that it
// starts may still open, where there is Landlock. A build with a sanitizer stays as it is. An error: this process must
// end.
[[nodiscard]] Result<void> EnterConfinement(Confinement kind, std::optional<uid_t> user,
                                            std::span<const std::string> keep = {});

// Positive scores die first when memory runs out. Where it can't be written nothing happens.
void SetOomScore(int score);

}  // namespace vgpud
