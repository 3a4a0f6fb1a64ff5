// SPDX-License-Identifier: Apache-2.0
// What a GPU and its VFs did during the last second, as differences between looks at their accounts. Pure: time is an
// argument.
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
  // Of the time between the last look and the look about one second before it. A VF that is younger: of its life.
  // window_ns 0: nothing is known yet.
  GpuRecent OfGpu() const;
  VfRecent Of(uint64_t key) const;

 private:
  struct Seen {
    TimePoint at{};
    GpuUseTimes gpu;
    std::vector<FairnessWindow::Sample> vfs;
    const VfAccount* Of(uint64_t key) const;
  };
  std::deque<Seen> looks_;
};

}  // namespace vgpud::daemon
