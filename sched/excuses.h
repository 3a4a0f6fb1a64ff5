// SPDX-License-Identifier: Apache-2.0
// How much time VFs may take to leave the GPU because the host gave them no core. Such time is repaid in full, so
// nobody loses a share by it, but others wait meanwhile: each VF has `most` of it at once and `percent` of the time in
// the long run. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ids.h"
#include "sched/types.h"

namespace vgpud {

class Excuses {
 public:
  struct Limits {
    Ns most = std::chrono::seconds{5};
    uint32_t percent = 25;
  };
  explicit Excuses(const Limits& limits) : limits_(limits) {}

  // May it have `time` more, now?
  bool Allow(VfId vf, Ns time, TimePoint now) { return UsedAt(vf, now) + time <= limits_.most; }
  void Charge(VfId vf, Ns time, TimePoint now) { UsedAt(vf, now) += time; }
  void Forget(VfId vf) {
    if (Raw(vf) < used_.size()) used_[Raw(vf)] = {};
  }

 private:
  struct Used {
    Ns time{0};
    TimePoint at{};
  };
  Ns& UsedAt(VfId vf, TimePoint now) {
    if (Raw(vf) >= used_.size()) used_.resize(Raw(vf) + 1);
    Used& used = used_[Raw(vf)];
    used.time = std::max(Ns{0}, used.time - (now - used.at) / 100 * limits_.percent);
    used.at = now;
    return used.time;
  }

  const Limits limits_;
  std::vector<Used> used_;  // by VF number
};

}  // namespace vgpud
