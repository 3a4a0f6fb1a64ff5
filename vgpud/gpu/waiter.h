// SPDX-License-Identifier: Apache-2.0
// How the scheduler thread waits: until a moment to the microsecond where the host allows it, or until it is told
// something. Used by that thread alone.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/futex.h"
#include "vgpud/gpu/awake_cpu.h"
#include "vgpud/gpu/wake_ups.h"

namespace vgpud::daemon {

// A moment of waiting that costs the other hardware thread of a core little.
inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Waiter {
 public:
  struct Options {
    // How long before a deadline to stop sleeping; none: as long as waits have been late, at most max_spin_percent of
    // the turn.
    std::optional<Ns> spin;
    uint32_t max_spin_percent = 10;
    bool keep_cpu_awake = false;  // between deadlines, too: costs the idle time of one CPU
    int fifo_priority = 10;       // of SCHED_FIFO; 0 = an ordinary thread
    // Which of the processors that there are, for schedulers that are beside each other; more of them than half of the
    // processors share one.
    uint32_t nth_cpu = 0;
  };
  // `known`: how late waits have been so far.
  explicit Waiter(const Options& options, const WakeUps& known = {}) : options_(options), wake_ups_(known) {}

  // Gives the calling thread what it may have of: SCHED_FIFO, else short slices and precedence among ordinary threads;
  // timers without slack; a CPU of its own.
  void Prepare();
  // Waits until `deadline`, the end of a turn of length `turn`, or less long. Call it again until the moment is there.
  // The index of the bell that woke it, if one did.
  std::optional<size_t> UntilDeadline(TimePoint deadline, Ns turn, std::span<const FutexWord> bells);
  // Sleeps until one of the bells rings, or has rung since it was seen, at most until `wake`. At most kMaxFutexWords.
  std::optional<size_t> UntilEvent(TimePoint wake, std::span<const FutexWord> bells);
  // Nobody has the GPU, nor will soon: the CPU may sleep.
  void Rest();
  // How long before the end of a turn of this length it stops sleeping for good, or, with SCHED_FIFO, until which it is
  // content with a CPU that may be asleep; also how long to look for an answer before sleeping.
  Ns Spin(Ns turn) const;

  bool fifo() const { return fifo_; }
  // -1: it is not bound to one.
  int cpu() const { return cpu_; }
  // Of all waits but the last ones before deadlines, for which the CPU was kept awake; and those.
  const WakeUps& wake_ups() const { return wake_ups_; }
  const WakeUps& awake_wake_ups() const { return awake_wake_ups_; }

 private:
  void BindToOneCpu();
  std::optional<size_t> Sleep(TimePoint wake, std::span<const FutexWord> bells, WakeUps& late);

  const Options options_;
  WakeUps wake_ups_;
  WakeUps awake_wake_ups_;
  std::unique_ptr<AwakeCpu> awake_;
  bool fifo_ = false;
  int cpu_ = -1;
};

}  // namespace vgpud::daemon
