// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/load.h"

#include <algorithm>

namespace vgpud::tools {
namespace {

constexpr Ns kDay = std::chrono::hours{24};
constexpr Ns kAtLeast{1'000};  // shorter bursts and sleeps than 1 us are taken for 1 us

}  // namespace

Ns Load::TimeOfDay(TimePoint t) const { return (t - midnight_) % kDay; }

// The first moment at or after `t` at which work may come.
TimePoint Load::WithinHours(TimePoint t) const {
  if (!spec_->hours) return t;
  const auto [from, to] = *spec_->hours;
  const Ns now = TimeOfDay(t);
  const bool inside = from <= to ? now >= from && now < to : now >= from || now < to;
  if (inside) return t;
  return t + (from >= now ? from - now : from - now + kDay);
}

TimePoint Load::EndOfHours(TimePoint t) const {
  if (!spec_->hours) return TimePoint::max();
  const Ns now = TimeOfDay(t);
  return t + (spec_->hours->to > now ? spec_->hours->to - now : spec_->hours->to - now + kDay);
}

void Load::Start(TimePoint now) {
  left_ = Ns{0};
  next_ = TimePoint::max();
  if (spec_->arrival == Arrival::kNone) return;
  if (spec_->arrival == Arrival::kAlways) {
    next_ = WithinHours(now);
    return;
  }
  const Distribution gap = spec_->arrival == Arrival::kPoisson
                               ? Distribution::Exponential(Ns{static_cast<int64_t>(1e9 / spec_->rate)})
                               : spec_->sleep;
  // Somewhere in its first gap: guests do not all begin at once.
  const Ns first{static_cast<int64_t>(static_cast<double>(gap.Sample(random_).count()) * random_.Unit())};
  next_ = WithinHours(now + first);
}

void Load::Stop() {
  left_ = Ns{0};
  next_ = TimePoint::max();
}

void Load::Kill(TimePoint now) { Start(now + std::max(kAtLeast, spec_->restart.Sample(random_))); }

void Load::Fire() {
  const TimePoint now = next_;
  next_ = TimePoint::max();
  if (spec_->arrival == Arrival::kAlways) {
    if (has_work()) {
      left_ = Ns{0};
      next_ = WithinHours(now);
    } else {
      left_ = Distribution::kLongest;
      next_ = EndOfHours(now);
    }
    return;
  }
  left_ += std::max(kAtLeast, spec_->work.Sample(random_));
  if (spec_->arrival == Arrival::kPoisson) {
    const auto gap = Distribution::Exponential(Ns{static_cast<int64_t>(1e9 / spec_->rate)});
    next_ = WithinHours(now + std::max(kAtLeast, gap.Sample(random_)));
  }
}

Ns Load::Consume(TimePoint from, Ns length) {
  if (!has_work()) return Ns{0};
  if (spec_->arrival == Arrival::kAlways) return length;
  const Ns used = std::min(length, left_);
  left_ -= used;
  if (!has_work() && spec_->arrival == Arrival::kBursty)
    next_ = WithinHours(from + used + std::max(kAtLeast, spec_->sleep.Sample(random_)));
  return used;
}

}  // namespace vgpud::tools
