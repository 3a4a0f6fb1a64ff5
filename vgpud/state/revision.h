// SPDX-License-Identifier: Apache-2.0
// Numbers that tell one state of a VF or GPU from the one before: whoever wants to change what he has seen says which
// it was, and is told when somebody else was there first. Never used again, not by a restarted daemon either.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace vgpud::daemon {

// Greater than `last` and, as long as the clock is not set back over a restart, than all of daemons before. Fits into
// the integers of JSON.
inline uint64_t NextRevision(uint64_t last = 0) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return std::max(last + 1, static_cast<uint64_t>(std::max<int64_t>(us, 1)));
}

}  // namespace vgpud::daemon
