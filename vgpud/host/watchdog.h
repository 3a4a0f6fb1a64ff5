// SPDX-License-Identifier: Apache-2.0
// Does a vgpud-vf still serve? It is asked every second over its link and answers from its event loop. No clock, no
// I/O: time and what the process did meanwhile are arguments.
//
// A process that the host gives no processor cannot answer: that time does not count against it, up to a limit. One
// that is stopped, sleeps in a system call or computes without end has no excuse.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vgpud::daemon {

class Watchdog {
 public:
  static constexpr Ns kAskEvery = std::chrono::seconds{1};
  static constexpr Ns kLookEvery = std::chrono::milliseconds{250};  // how often, while it owes an answer
  static constexpr Ns kPatience = std::chrono::seconds{2};          // while it had a processor, or did not want one
  static constexpr Ns kLongest = std::chrono::seconds{10};          // in any case

  // Of the process, as the kernel accounts for it.
  struct Pulse {
    bool runnable = false;  // on a processor or waiting for one
    Ns computed{0};         // so far
    uint64_t threads = 0;
  };
  enum class Verdict { kWait, kAsk, kDead };

  Watchdog() = default;
  // Its questions are numbered from `first` + 1 on, so that they are not those of an earlier vgpud.
  explicit Watchdog(uint64_t first) : first_(first), sequence_(first) {}

  // kAsk: send `sequence()`. kDead: it has not answered in time.
  Verdict Tick(TimePoint now, const Pulse& pulse) {
    const Ns passed = looked_ == TimePoint{} ? Ns{0} : now - looked_;
    const Ns computed = std::max(Ns{0}, pulse.computed - computed_);
    looked_ = now;
    computed_ = pulse.computed;
    if (!asking_) {
      if (asked_ != TimePoint{} && now - asked_ < kAskEvery) return Verdict::kWait;
      asking_ = true;
      asked_ = now;
      silent_ = Ns{0};
      ++sequence_;
      return Verdict::kAsk;
    }
    silent_ += pulse.runnable ? std::min(passed, computed) : passed;
    return silent_ >= kPatience || now - asked_ >= kLongest ? Verdict::kDead : Verdict::kWait;
  }
  // When Tick is to be called again: one that has answered is left alone until it is asked again. Many processes are
  // looked at in the same moments, so that vgpud wakes up for all of them once.
  Ns NextLookIn(TimePoint now) const {
    const TimePoint due = now + (asking_ ? kLookEvery : std::max(kLookEvery, asked_ + kAskEvery - now));
    return due - now + (kLookEvery - due.time_since_epoch() % kLookEvery) % kLookEvery;
  }
  // It has answered. False: it was not asked that.
  bool Answered(uint64_t sequence) {
    if (!asking_ || sequence != sequence_) return false;
    asking_ = false;
    return true;
  }
  // An answer to an earlier vgpud?
  bool IsOld(uint64_t sequence) const { return sequence <= first_; }
  // Its answers are not read at the moment, which is not its fault.
  void Excuse(TimePoint now) {
    silent_ = Ns{0};
    asked_ = now;
    looked_ = now;
  }
  uint64_t sequence() const { return sequence_; }
  // Since when it has been asked without an answer; 0: it has answered.
  Ns unanswered(TimePoint now) const { return asking_ ? now - asked_ : Ns{0}; }

 private:
  bool asking_ = false;
  uint64_t first_ = 0;
  uint64_t sequence_ = 0;
  TimePoint asked_{};
  TimePoint looked_{};
  Ns computed_{0};
  Ns silent_{0};
};

}  // namespace vgpud::daemon
