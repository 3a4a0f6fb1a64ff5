// SPDX-License-Identifier: Apache-2.0
#include "sched/anticipation.h"

#include <algorithm>

namespace vgpud {
namespace {

// A gap counts for an eighth of the estimate: what was true 20 gaps ago hardly does.
constexpr int64_t kMemory = 8;
// After one failure, which may be the host's doing, the next gap is waited for all the same; after the n-th in a row
// 2^(n-1) gaps are not, so many at most.
constexpr uint32_t kMostDoublings = 7;

}  // namespace

Anticipation::Thinker& Anticipation::At(VfId vf) {
  if (Raw(vf) >= thinkers_.size()) thinkers_.resize(Raw(vf) + 1, Thinker{.budget = options_.most});
  return thinkers_[Raw(vf)];
}

void Anticipation::Held(VfId vf, Ns time, Ns slice) {
  Thinker& thinker = At(vf);
  const Ns full = options_.most + slice * options_.percent / 100;
  thinker.budget = std::max(thinker.budget, std::min(full, thinker.budget + time * options_.percent / 100));
}

Ns Anticipation::Patience(VfId vf, Ns left) const {
  const Thinker unknown{.budget = options_.most};
  const Thinker& thinker = Raw(vf) < thinkers_.size() ? thinkers_[Raw(vf)] : unknown;
  if (options_.percent == 0 || thinker.skip != 0) return options_.grace;
  const Ns limit = std::min(options_.most, thinker.budget);
  // What can hardly be waited for to its end is not waited for at all. All else is, as long as it may: a turn that is
  // given away for one gap in a hundred that is longer than the others costs more than waiting for that one.
  if (thinker.usual > std::min(limit, left)) return options_.grace;
  return std::max(options_.grace, limit);
}

void Anticipation::Returned(VfId vf, Ns gap) {
  Thinker& thinker = At(vf);
  Charge(thinker, gap);
  thinker.usual = thinker.usual == Ns{0} ? gap : thinker.usual + (gap - thinker.usual) / kMemory;
  thinker.failures = thinker.skip = 0;
}

void Anticipation::GaveUp(VfId vf, Ns waited) {
  Thinker& thinker = At(vf);
  Charge(thinker, waited);
  if (thinker.skip != 0) {
    --thinker.skip;
  } else if (waited > options_.grace) {
    thinker.failures = std::min(thinker.failures + 1, kMostDoublings);
    if (thinker.failures > 1) thinker.skip = 1u << (thinker.failures - 1);
  }
}

void Anticipation::CutShort(VfId vf, Ns waited) { Charge(At(vf), waited); }

void Anticipation::Charge(Thinker& thinker, Ns waited) {
  thinker.budget -= std::min(thinker.budget, std::max(Ns{0}, waited - options_.grace));
}

void Anticipation::Forget(VfId vf) {
  if (Raw(vf) < thinkers_.size()) thinkers_[Raw(vf)] = Thinker{.budget = options_.most};
}

}  // namespace vgpud
