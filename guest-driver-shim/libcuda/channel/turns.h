// SPDX-License-Identifier: Apache-2.0
// Turns: work that this library has to submit by itself before queued work of the program can go on, as a conditional
// node's (launch/conditional_node.cc). A host takes freeing of memory and its like only when it has nothing else, and
// nothing behind it before; a turn would wait in vain then. So none of that is submitted while a turn is outstanding.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/channel/lock_ranks.h"

namespace vgpud::cuda {

// Any thread.
class Turns {
 public:
  // Of a thread that serves a turn, or has something that one may need: it has all of the host's room (backlog.h).
  class Exempt {
   public:
    Exempt() : before_(std::exchange(now_, true)) {}
    ~Exempt() { now_ = before_; }
    Exempt(const Exempt&) = delete;
    static bool Now() { return now_; }

   private:
    inline static thread_local bool now_ = false;
    const bool before_;
  };

  // A turn is about to be queued. Waits while the program submits what needs an idle host.
  void Begin() {
    MutexLock lock(mutex_);
    while (!Exempt::Now() && idlers_ != 0) changed_.Wait(mutex_);
    ++outstanding_;
    any_ = true;
  }
  // It is over, or was not queued.
  void End() {
    MutexLock lock(mutex_);
    if (--outstanding_ != 0) return;
    any_ = false;
    changed_.NotifyAll();
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // Is more than the one of this thread?
  bool others() {
    MutexLock lock(mutex_);
    return outstanding_ > 1;
  }

  // While an operation is submitted that the host takes only when it has nothing else: no turn is outstanding, and none
  // begins.
  class Idle {
   public:
    explicit Idle(Turns& turns) : turns_(turns) {
      MutexLock lock(turns_.mutex_);
      ++turns_.idlers_;
      while (!Exempt::Now() && turns_.outstanding_ != 0) turns_.changed_.Wait(turns_.mutex_);
    }
    ~Idle() {
      MutexLock lock(turns_.mutex_);
      if (--turns_.idlers_ == 0) turns_.changed_.NotifyAll();
    }
    Idle(const Idle&) = delete;

   private:
    Turns& turns_;
  };

 private:
  Mutex mutex_{lock_rank::kTurns};
  CondVar changed_;
  std::atomic<bool> any_{false};
  uint32_t outstanding_ GUARDED_BY(mutex_) = 0;
  uint32_t idlers_ GUARDED_BY(mutex_) = 0;
};

}  // namespace vgpud::cuda
