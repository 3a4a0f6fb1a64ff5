// SPDX-License-Identifier: Apache-2.0
// Capabilities of Linux: given up for good.
#pragma once

#include <initializer_list>
#include <string>

#include "base/result.h"

namespace vgpud {

// Keeps of the capabilities of this thread those in `keep` (CAP_* numbers), for itself and whatever it starts; no later
// exec gives others back. Call it before other threads exist. Those that it has not got it does not get.
[[nodiscard]] Result<void> KeepCapabilities(std::initializer_list<int> keep);
// What this thread may use now: "cap_kill,cap_setuid"; "none".
std::string EffectiveCapabilities();

}  // namespace vgpud
