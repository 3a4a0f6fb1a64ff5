// SPDX-License-Identifier: Apache-2.0
// How long a VF keeps its turn without work, because more is coming: a program that launches a kernel and waits for it,
// again and again, leaves a gap after each, and one that lost its turn in every gap would do a fraction of what its
// share is worth. Learned per VF from its own gaps, as the I/O schedulers AS, CFQ and BFQ do it.
//
// What it costs is bounded: gaps are waited for in the VF's own slice, so that others lose nothing but what they would
// have been lent, and out of a budget that grows by `percent` of the time of the VF's turns and holds `percent` of a
// slice at most, beside `most` to learn from. Over any window of a VF, whatever its program does,
//   time waited beyond the grace <= most + percent / 100 * (time of its turns + one slice),
// with the largest options of that time. Waiting in vain is charged as well, and makes the VF wait less often.
#pragma once

#include <vector>

#include "sched/types.h"

namespace vgpud {

class Anticipation {
 public:
  struct Options {
    Ns grace{0};           // is always waited, out of no budget
    uint32_t percent = 0;  // 0: only the grace
    Ns most{500'000};      // the longest gap that is waited for
  };
  Anticipation() = default;
  explicit Anticipation(const Options& options) : options_(options) {}
  // From the next gap on.
  void SetOptions(const Options& options) { options_ = options; }
  // `vf` has had its turn, of `slice`, for `time` more.
  void Held(VfId vf, Ns time, Ns slice);
  // `vf`, which has its turn, has run out of work and has `left` of its slice. How long it keeps the turn.
  Ns Patience(VfId vf, Ns left) const;
  // The gap is over: there was work again after `gap`, or there was none and the turn was given away after `waited`, or
  // the slice was over.
  void Returned(VfId vf, Ns gap);
  void GaveUp(VfId vf, Ns waited);
  void CutShort(VfId vf, Ns waited);
  void Forget(VfId vf);

 private:
  struct Thinker {
    Ns usual{0};            // gap after which there was work, averaged; 0: not known
    uint32_t failures = 0;  // in a row
    uint32_t skip = 0;      // gaps that are not waited for now
    Ns budget{0};
  };
  Thinker& At(VfId vf);
  void Charge(Thinker& thinker, Ns waited);

  Options options_;
  std::vector<Thinker> thinkers_;  // by VF number
};

}  // namespace vgpud
