// SPDX-License-Identifier: Apache-2.0
// Keeps the looks of the last second at the accounts of a GPU and its VFs, and returns how much each has grown. Pure:
// time is an argument.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "sched/fairness.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

class LastSecond {
 public:
  // To be called at least every 500 ms while there are VFs; after a longer time without looks it begins anew.
  void Look(TimePoint now, const GpuUseTimes& gpu, std::span<const FairnessWindow::Sample> vfs);
  // Both return what was done between the look about one second before the last one, or the first one that saw this VF,
  // and the last one. window_ns is 0 while nothing is known.
  GpuRecent OfGpu() const;
  VfRecent Of(uint64_t key) const;

 private:
  struct Seen {
    TimePoint at{};
    GpuUseTimes gpu;
    std::vector<FairnessWindow::Sample> vfs;  // by key
    const VfAccount* Of(uint64_t key) const;
  };
  std::deque<Seen> looks_;
};

}  // namespace vgpud::daemon
