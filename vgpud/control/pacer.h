// SPDX-License-Identifier: Apache-2.0
// Requests of clients without privileges begin here one after another: first those of the sharer that has had least of
// this thread's time lately, then in the order in which they came. So a sharer that asks now and then does not wait
// behind those that ask without end, however many they are. Whatever requests cost, others on this thread are behind
// one of them at most, and seven eighths of its time are theirs: what comes next waits for seven times as long as the
// one before took. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

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
  // `who`: the sharer.
  [[nodiscard]] Turn Enter(const std::string& who, std::function<void()> begin);
  // This thread did something for `who` outside of a turn, and took so long for it.
  void Charge(const std::string& who, Ns spent);

 private:
  struct Waiting {
    uint64_t number;
    std::function<void()> begin;  // none: it has begun, and leaves the queue by itself, at once or later
  };
  struct Line {
    Ns had{0};  // of the thread's time; at least `Queue::had`
    std::list<Waiting> waiting;
    std::list<Waiting>::iterator First();
  };
  struct Queue {
    std::map<std::string, Line> lines;
    Ns had{0};  // by the sharer whose turn was last, before it: sharers that come count as if they had had as much
  };
  void Next();
  void Arm(Ns rest);
  // Whose turn it is; null: nobody waits. Forgets sharers that are like those that were never here.
  Line* WhoHadLeast();

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  uint64_t next_number_ = 0;
  PartOfTime part_{8};
  Ns spent_{0};  // by those that have begun
  bool armed_ = false;
  EventLoop::WatchPtr next_;
};

}  // namespace vgpud::daemon
