// SPDX-License-Identifier: Apache-2.0
// How busy each process of a virtual function was, from the figures that this process has seen: the host keeps sums,
// not histories. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_status.h"

namespace vgpud::nvml {

class UseHistory {
 public:
  struct Use {
    unsigned pid = 0;
    unsigned percent = 0;  // of the time on the host's clock
  };
  // What was seen at `unix_us` of the system's clock.
  void Add(const vgpu_status& status, uint64_t unix_us);
  // Of the processes that are there now, each from the oldest look since then in which it was there; nothing of one
  // that was seen once. A process with several channels is as busy as the busiest of them.
  std::vector<Use> Since(uint64_t unix_us) const;
  uint64_t last_us() const { return looks_.empty() ? 0 : looks_.back().unix_us; }

 private:
  struct Look {
    uint64_t unix_us = 0;
    uint64_t now_ns = 0;
    std::map<uint64_t, uint64_t> gpu_ns;  // by the channel's id
  };
  std::deque<Look> looks_;
  std::map<uint64_t, unsigned> pids_;  // of the last look
};

}  // namespace vgpud::nvml
