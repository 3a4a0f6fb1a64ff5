// SPDX-License-Identifier: Apache-2.0
// One channel at work: the ring side (I/O thread) and the GPU side (GPU thread) of a ChannelEngine, and the lock
// between them. A third thread (loader) does what takes long and needs no turn, at ordinary priority: the GPU thread
// does nothing else than what is paid for with turns.
//
// The lock is held for bookkeeping only. A step (grid, chunk of a copy) runs without it; whoever needs the context for
// itself (allocation, reset, ...) waits until the step is over, which is one budget or 64 KiB. While somebody waits so,
// the GPU thread leaves the GPU, so that no such operation ever delays a revoke.
#pragma once

#include "gpu/exec/channel_engine.h"
#include "gpu/exec/memory/lock_ranks.h"
#include "gpu/exec/turn.h"

namespace vgpud::exec {

class Executor {
 public:
  // What `callbacks` points to outlives the executor.
  Executor(ChannelMemory memory, uint64_t vram_quota, Turn turn, ChannelCallbacks callbacks);

  // The channel's logic, under the lock until the end of the expression: executor.engine()->X(). What waits stays out
  // of that expression.
  class Engine {
   public:
    explicit Engine(Executor& executor) NO_THREAD_SAFETY_ANALYSIS : executor_(executor) { executor_.mu_.lock(); }
    ~Engine() NO_THREAD_SAFETY_ANALYSIS { executor_.mu_.unlock(); }
    Engine(const Engine&) = delete;
    ChannelEngine* operator->() NO_THREAD_SAFETY_ANALYSIS { return &executor_.engine_; }

   private:
    Executor& executor_;
  };
  Engine engine() { return Engine(*this); }

  // --- I/O thread ---
  // Takes up to `max` entries.
  ChannelEngine::Ring Consume(unsigned max);
  bool RingChanged();
  // Declares that the I/O thread sleeps. False: there is something to take after all, don't sleep.
  bool PrepareSleep();
  void EndSleep();
  // Returns when nothing uses the buffer any more.
  void DropBuffer(uint32_t id);
  // Returns when nothing uses the channel area any more; the channel is over.
  void Close();
  HostMemory& memory() { return engine_.memory(); }

  // --- GPU thread ---
  // Serves until Stop; vgpud-exec itself never stops it, it exits.
  void RunGpuThread();
  // Any thread. Takes effect when the GPU thread is off the GPU and not waiting for a grant, and the loader at rest.
  void Stop();
  // One turn under `grant`: runs what is runnable until there is nothing, or the slice is over. Returns off the GPU.
  // When there is nothing it takes new entries out of the ring itself for a moment (linger_ns): a program that waits
  // for its kernel and launches the next one meets no thread that has to be woken first.
  void TakeTurn(uint32_t grant);
  // Does the GPU thread sleep until there is?
  bool GpuThreadRests();

  // --- loader ---
  // Serves until Stop.
  void RunLoader();
  // A module to load, when no step is running; false when there was none. Until it is loaded, no step begins.
  bool RunJob();

 private:
  // One entry, as far as it goes.
  ChannelEngine::Ring ConsumeOne() REQUIRES(mu_);
  // The I/O thread waits until no step is running; none begins before it lets go of the lock.
  void WaitUntilAlone() REQUIRES(mu_);
  // The slot says whether the guest process has a context.
  void TellContext() REQUIRES(mu_);
  // The GPU thread may have something to do. That there is work is said for it: it may get no processor before its VF
  // gets the GPU.
  void WakeGpuThread() REQUIRES(mu_);
  // Is there something that the GPU thread may do in a turn?
  bool MayCompute() const REQUIRES(mu_) { return engine_.HasWorkForGpu() && !engine_.loader().Pending(); }
  // Is there work now? It may have left the GPU.
  bool Linger() REQUIRES(mu_);
  bool LockSoon() TRY_ACQUIRE(true, mu_);
  // Off the GPU, when nothing of ours is on it any more. The lock is let go while that is waited for.
  void LeaveGpu(ExecState to) REQUIRES(mu_);
  // The turn has ended, with or without work left.
  void HasLeft() REQUIRES(mu_);
  // Waits for work; memory that another VF waits for goes off the card meanwhile.
  void Rest() REQUIRES(mu_);
  // The same, off the GPU.
  void MakeRoom() REQUIRES(mu_);
  // kMissing: the turn has ended. kLookAgain: the lock was let go or the context is lost, what was seen before is old.
  enum class Memory : uint8_t { kThere, kMissing, kLookAgain };
  // Brings back what is not on the card.
  Memory BringMemory() REQUIRES(mu_);
  // One step; returns false when the turn has ended.
  bool Step(Op& op) REQUIRES(mu_);

  const ChannelCallbacks& callbacks() const { return engine_.callbacks(); }

  Turn turn_;
  Mutex mu_{lock_rank::kExecutor};
  CondVar step_over_;  // the I/O thread waits
  CondVar work_;       // the GPU thread waits
  CondVar jobs_;       // the loader waits
  bool stopping_ GUARDED_BY(mu_) = false;
  bool gpu_rests_ GUARDED_BY(mu_) = false;   // the GPU thread is in work_
  bool lingers_ GUARDED_BY(mu_) = false;     // the GPU thread looks into the ring
  bool comes_soon_ GUARDED_BY(mu_) = false;  // within linger_most_ns, the last time that linger_ns were not enough
  uint64_t in_vain_ns_ GUARDED_BY(mu_) = 0;  // it has looked before there was nothing to do
  bool io_sleeps_ GUARDED_BY(mu_) = false;   // the I/O thread does not
  bool io_wants_ GUARDED_BY(mu_) = false;
  bool in_step_ GUARDED_BY(mu_) = false;
  ChannelEngine engine_;  // under mu_, but for what it says of steps and jobs
};

}  // namespace vgpud::exec
