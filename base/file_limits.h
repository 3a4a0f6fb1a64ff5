// SPDX-License-Identifier: Apache-2.0
// How many files our processes that serve a guest have open at most, beside those of the guest itself
// (base/jail/rules.h).
#pragma once

#include <cstdint>

namespace vgpud {

inline constexpr uint64_t kMostServerFiles = 8192;  // vgpud-vf
inline constexpr uint64_t kMostExecutorFiles = 128;

}  // namespace vgpud
