// SPDX-License-Identifier: Apache-2.0
// What is known of the vgpud-vf of a VF as a process, for show and metrics.
#pragma once

#include <cstdint>

namespace vgpud::daemon {

struct ServerReport {
  uint64_t throttled = 0;      // times that its link was not read for a while, because it asked for too much
  uint64_t throttled_ns = 0;   // for how long in all
  uint64_t unanswered_ns = 0;  // how long it has not answered now
  uint64_t hangs = 0;          // 1: it was killed for not answering
  uint64_t log_lines_dropped = 0;
};

}  // namespace vgpud::daemon
