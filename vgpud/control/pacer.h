// SPDX-License-Identifier: Apache-2.0
// Requests of clients without privileges begin here one after another, in the order in which they came. However many
// there are and whatever they cost, others on this thread are behind one of them at most, and seven eighths of its time
// are theirs: what comes next waits for seven times as long as the one before took. Main thread.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "base/clock.h"
#include "base/event_loop.h"

namespace vgpud::daemon {

// Processor time that the calling thread has used so far.
Ns ThreadTime();

// When may this thread do more of something, so that it takes no more than one part in `parts` of its time? A rest is a
// second at most.
class PartOfTime {
 public:
  explicit PartOfTime(int parts) : parts_(parts) {}
  // From now on `used` counts.
  void Begin(TimePoint now, Ns used) { began_ = now, used_ = used; }
  // How long to rest first.
  Ns Rest(TimePoint now, Ns used) const;

 private:
  static constexpr Ns kLongest = std::chrono::seconds{1};
  const int parts_;
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
  PartOfTime part_{8};
  Ns spent_{0};  // by those that have begun
  bool armed_ = false;
  EventLoop::WatchPtr next_;
};

}  // namespace vgpud::daemon
