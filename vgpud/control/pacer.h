// SPDX-License-Identifier: Apache-2.0
// Requests of clients without privileges begin here one after another, in the order in which they came. However many
// there are and whatever they cost, others on this thread are behind one of them at most, and at least half of its time
// is theirs: what comes next waits for as long as this thread has been busy. Main thread.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "base/clock.h"
#include "base/event_loop.h"

namespace vgpud::daemon {

// Processor time that the calling thread has used so far.
Ns ThreadTime();

// When may more be done, so that this thread is busy for no more than half of its time?
class HalfTime {
 public:
  // From now on `used` counts.
  void Begin(TimePoint now, Ns used) { began_ = now, used_ = used; }
  // How long to rest first.
  Ns Rest(TimePoint now, Ns used) const;

 private:
  static constexpr Ns kLongest = std::chrono::seconds{1};
  TimePoint began_{};
  Ns used_{0};
};

class Pacer {
 public:
  explicit Pacer(EventLoop& loop);
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  // Waits for its turn while it lives; destroying it leaves the queue.
  using Turn = std::shared_ptr<const void>;
  [[nodiscard]] Turn Enter(std::function<void()> begin);

 private:
  using Queue = std::list<std::function<void()>>;
  void Next();
  void Arm(Ns rest);

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  HalfTime half_;
  bool armed_ = false;
  EventLoop::WatchPtr next_;
};

}  // namespace vgpud::daemon
