// SPDX-License-Identifier: Apache-2.0
// How a kernel on a lane is waited for.
#pragma once

#include "gpu/cuda/driver_api.h"
#include "gpu/gpu.h"

namespace vgpud::driver {

// One for each kernel. The GPU thread, with the card bound.
class LaneWait {
 public:
  // How the work in front of `done` has ended. kNotReady: it goes on, and `stop` says stop, or about a tenth of a
  // millisecond has passed, after which others get a look in.
  Status Await(const Api& api, Event done, const StopWord& stop);

 private:
  uint64_t nap_ns_ = 0;  // the last one
};

}  // namespace vgpud::driver
