// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/pacer.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace vgpud::daemon {

Ns ThreadTime() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + Ns{t.tv_nsec};
}

Ns PartOfTime::Rest(TimePoint now, Ns used) const {
  return std::clamp(parts_ * (used - used_) - (now - began_), Ns{0}, kLongest);
}

Pacer::Pacer(EventLoop& loop) : next_(loop.Timer([this] { Next(); })) {}

Pacer::Turn Pacer::Enter(std::function<void()> begin) {
  const auto place = queue_->insert(queue_->end(), std::move(begin));
  if (!armed_) Arm(Ns{0});
  return Turn{&*place, [queue = queue_, place](const void*) { queue->erase(place); }};
}

void Pacer::Arm(Ns rest) {
  armed_ = true;
  next_->Arm(rest);
}

// Whoever has begun leaves the queue by itself, at once or later.
void Pacer::Next() {
  armed_ = false;
  const auto first = std::find_if(queue_->begin(), queue_->end(), [](const auto& begin) { return begin != nullptr; });
  if (first == queue_->end()) return;
  const TimePoint now = Now();
  if (const Ns rest = part_.Rest(now, spent_); rest > Ns{0}) return Arm(rest);
  part_.Begin(now, spent_);
  armed_ = true;
  const Ns before = ThreadTime();
  std::exchange(*first, nullptr)();
  spent_ += ThreadTime() - before;
  Arm(Ns{0});  // behind what has become due meanwhile
}

}  // namespace vgpud::daemon
