// SPDX-License-Identifier: Apache-2.0
// What one guest wants from the GPU: work that comes, is used up and comes again.
#pragma once

#include "tools/sim/workload.h"

namespace vgpud::tools {

class Load {
 public:
  // `spec` must outlive the load. `midnight` is any midnight; hours of the day are counted from it.
  Load(const VfSpec& spec, Random random, TimePoint midnight) : spec_(&spec), random_(random), midnight_(midnight) {}

  // The guest starts: work comes from `now` on.
  void Start(TimePoint now);
  // The guest ends: no work is left and none comes.
  void Stop();
  // The guest's process was killed: what it had to do is lost, it begins again after its restart time.
  void Kill(TimePoint now);

  // When work comes or goes by itself; TimePoint::max(): never.
  TimePoint next() const { return next_; }
  // What happens at next().
  void Fire();
  // The GPU worked for this guest from `from` on for `length`, of which it may have used only a part: it had no more
  // work. Returns that part.
  Ns Consume(TimePoint from, Ns length);

  bool has_work() const { return left_ > Ns{0}; }
  // GPU time until it has no work; Distribution::kLongest for who never ends.
  Ns left() const { return left_; }
  Random& random() { return random_; }

 private:
  TimePoint WithinHours(TimePoint t) const;
  TimePoint EndOfHours(TimePoint t) const;
  Ns TimeOfDay(TimePoint t) const;

  const VfSpec* spec_;
  Random random_;
  TimePoint midnight_;
  TimePoint next_ = TimePoint::max();
  Ns left_{0};
};

}  // namespace vgpud::tools
