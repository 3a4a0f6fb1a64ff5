// SPDX-License-Identifier: Apache-2.0
// One channel at work: the ring side (I/O thread) and the GPU side (GPU thread) of a ChannelEngine, and the lock
// between them. A third thread (loader) does what takes long and needs no turn, at ordinary priority: the GPU thread
// does nothing else than what is paid for with turns.
//
// The lock is held for bookkeeping only. A step (grid, chunk of a copy) runs without it; whoever needs the context for
// itself (allocation, reset, ...) waits until the step is over, which is one budget or 64 KiB. While somebody waits so,
// the GPU thread leaves the GPU, so that no such operation ever delays a revoke.
#pragma once

#include <functional>
#include <memory>

#include "gpu/exec/card_memory.h"
#include "gpu/exec/channel_engine.h"
#include "gpu/exec/host_work.h"
#include "gpu/exec/memory/lock_ranks.h"
#include "gpu/exec/turn.h"

namespace vgpud::exec {

class Executor {
 public:
  struct Callbacks {
    std::function<void()> interrupt;  // to the guest process
    std::function<void()> progress;   // wake the I/O thread
    std::function<std::unique_ptr<Gpu>()> make_gpu;
    std::function<uint64_t()> now_ns;
    HostMemory* memory = nullptr;           // outlives the executor; nullptr: without a limit
    HostWork* work = nullptr;               // outlives the executor
    CardMemory* card = nullptr;             // outlives the executor; nullptr: memory stays on the card
    std::function<void()> await_room = {};  // with `card`: without the lock, until there may be room on it
    bool asks_before_loads = false;         // somebody answers TakeLoadRequest
    uint64_t linger_ns = 0;                 // how long a turn without work looks for more by itself
    uint64_t linger_woken_ns = 0;           // the same, for a program that slept and was just woken up
    uint64_t linger_most_ns = 0;            // the same, of a program that has last come back within this time
  };
  Executor(ChannelMemory memory, uint64_t vram_quota, Turn turn, Callbacks callbacks);

  // --- I/O thread ---
  // Takes up to `max` entries.
  ChannelEngine::Ring Consume(unsigned max);
  bool RingChanged();
  // Declares that the I/O thread sleeps. False: there is something to take after all, don't sleep.
  bool PrepareSleep();
  void EndSleep();
  bool CompletionsWaiting();
  // ChannelEngine::WaitsForValues.
  bool WaitsForValues();
  void AddBuffer(uint32_t id, GuestArea* area);
  // Returns when nothing uses the buffer any more.
  void DropBuffer(uint32_t id);
  // ChannelEngine::buffer_part.
  uint32_t buffer_part();
  // Returns when nothing uses the channel area any more; the channel is over.
  void Close();
  // The VRAM request to send now, and its answer (gpu/exec/memory/vram_share.h).
  std::optional<int64_t> TakeVramRequest();
  void OnVramReply(int64_t delta, bool ok, uint64_t vf_used);
  // The load of a module to ask for now (ChannelEngine::TakeLoadRequest), and that it may be done.
  bool TakeLoadRequest();
  void OnLoadReply();
  uint64_t TakeCodeRead();
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
  // Is there something for the GPU thread or the loader?
  bool HasWork();
  // Does the GPU thread sleep until there is?
  bool GpuThreadRests();

  // --- loader ---
  // Serves until Stop.
  void RunLoader();
  // A module to load, when no step is running; false when there was none. Until it is loaded, no step begins.
  bool RunJob();

  uint32_t sticky_error();

 private:
  // What the I/O thread does meanwhile, the engine may ask to be alone for (ChannelEngine::Callbacks::exclusive).
  class IoCall;
  void WaitExclusive() REQUIRES(mu_);
  void WithoutLock(const std::function<void()>& work) REQUIRES(mu_);
  // The GPU thread may have something to do. That there is work is said for it: it may get no processor before its VF
  // gets the GPU.
  void WakeGpuThread() REQUIRES(mu_);
  // Is there something that the GPU thread may do in a turn?
  bool MayCompute() const REQUIRES(mu_) { return engine_.HasWorkForGpu() && !engine_.JobPending(); }
  bool Linger() REQUIRES(mu_);
  bool LockSoon() TRY_ACQUIRE(true, mu_);
  // Off the GPU, when nothing of ours is on it any more. The lock is let go while that is waited for.
  void LeaveGpu(ExecState to) REQUIRES(mu_);
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

  Callbacks callbacks_;
  Turn turn_;
  Mutex mu_{lock_rank::kExecutor};
  CondVar step_over_;                      // the I/O thread waits
  CondVar work_;                           // the GPU thread waits
  CondVar jobs_;                           // the loader waits
  bool io_calls_ GUARDED_BY(mu_) = false;  // an IoCall is there
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
