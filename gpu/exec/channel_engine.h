// SPDX-License-Identifier: Apache-2.0
// The channel's logic: takes entries out of the ring, checks them, has the object of their topic handle them, and says
// what the GPU does next. No threads and no waiting in here: the executor (gpu/exec/executor.h) serialises all calls
// with one lock, except RunStep and the loader's Run, which run outside of it so that a kernel never holds up the ring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "gpu/capability/async_work.h"
#include "gpu/exec/channel/callbacks.h"
#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/channel/host_memory_waits.h"
#include "gpu/exec/channel/stream_work.h"
#include "gpu/exec/ops/buffer_ops.h"
#include "gpu/exec/ops/buffers.h"
#include "gpu/exec/ops/device_ops.h"
#include "gpu/exec/ops/memory_ops.h"
#include "gpu/exec/ops/module_loader.h"
#include "gpu/exec/ops/module_ops.h"
#include "gpu/exec/ops/queue_ops.h"
#include "gpu/exec/ops/runtime_ops.h"
#include "gpu/exec/ops/texture_ops.h"
#include "gpu/exec/ops/vram_use.h"

namespace vgpud::exec {

class ChannelEngine {
 public:
  ChannelEngine(ChannelMemory memory, uint64_t vram_quota, ChannelCallbacks callbacks);
  const ChannelCallbacks& callbacks() const { return callbacks_; }

  // --- ring side ---
  enum class Ring {
    kMore,     // one entry was taken
    kPart,     // a part of a long one was done: look whether there is something else, then call again
    kEmpty,    // nothing to take (or the ring index is broken: look again when the guest rings)
    kWaiting,  // an entry, or the whole ring, waits for progress: call again after some
    kLink,     // an entry names a buffer that may be announced on the link: read that, then call again
    kAlone,    // an entry must be alone: call again, `alone`, when no step is running and none can begin
    kCopy,     // copy() is to be run without the lock, then call again
  };
  // `alone`: no step is running.
  Ring ConsumeOne(bool alone = true);
  // Takes a new entry that a microsecond is enough for, in which the lock is kept; all else is left where it is, with
  // kEmpty. No step is running.
  Ring ConsumeBrief();
  UnlockedCopy copy() const { return waiting_->copy; }
  // Has the guest produced since ConsumeOne looked?
  bool RingChanged() const { return !closed() && channel_.ring().Changed(); }
  // Tells the guest what of the ring and the payload it may use again. It is told by itself of much, with each
  // completion, and when there is nothing to take; before anything else that may take long this has to be called.
  void TellRoom() { channel_.ring().TellRoom(); }
  // Tells the guest that we sleep (1) or are awake (0), and TellRoom.
  void SetNeedWakeup(bool sleeping);
  // Does work wait for a word in memory? Nobody tells when it changes: ConsumeOne looks.
  bool WaitsForValues() const { return !closed() && work_.streams().values_queued(); }
  // Moves completions to the guest as far as it has made room. Do some still wait?
  bool FlushCompletions();
  // Did the guest sleep when it was last told something? Once per time.
  bool TakeInterrupted() { return channel_.completions().TakeInterrupted(); }
  bool ring_waits() const { return ring_waits_; }
  // The guest process has a context now, or none any more: what has changed since the last call.
  std::optional<bool> TakeContextChange() { return context_.TakeChange(); }
  uint32_t sticky_error() const { return static_cast<uint32_t>(channel_.sticky()); }

  // --- areas ---
  Buffers& buffers() { return buffers_; }
  // Buffers::Drop.
  void DropBuffer(uint32_t id) { buffers_.Drop(id, work_); }
  // The channel area goes away: forgets all work. No step may be running.
  void Close();

  // --- memory and modules ---
  VramShare& vram() { return vram_share_; }
  // What the whole VF may have from now on.
  void SetVramQuota(uint64_t bytes);
  HostMemory& memory() { return memory_; }
  ModuleLoader& loader() { return loader_; }
  const ModuleLoader& loader() const { return loader_; }

  // --- GPU side ---
  bool HasWork() const { return loader_.HasJob() || HasWorkForGpu(); }
  bool HasWorkForGpu() const { return work_.streams().HasWorkForGpu(); }
  Op* NextForGpu() { return work_.streams().NextForGpu(); }
  // Before a step of `op`: what may be launched behind it (AsyncWork::LaunchBehind); none without `more`.
  void FindBehind(const Op& op, bool more) {
    behind_.clear();
    if (more && vram_.one_stream_has_room()) work_.streams().FindBehind(op, behind_);
  }
  // Advances `op` by at most `budget` warp instructions or 64 KiB. On the GPU only, without the lock.
  StepResult RunStep(Op& op, const StopWord& stop, uint64_t budget) {
    return FindOp(op.kind)->step(context_.gpu(), op, {stop, budget, behind_});
  }
  // Takes the result in. Returns true when a kernel has finished.
  bool FinishStep(Op& op, StepResult result);
  // Is work on the GPU that no step waits for (AsyncWork::Busy)? It is over when the other one returns; on the GPU
  // only, without the lock.
  bool GpuBusy() const {
    const AsyncWork* const work = context_.can().async_work;
    return work != nullptr && work->Busy();
  }
  void WaitUntilGpuIdle() const {
    if (AsyncWork* const work = context_.can().async_work; work != nullptr) work->WaitUntilIdle();
  }
  // nullptr: memory stays on the card. While nobody else uses the Gpu.
  Evictable* evictable() const { return context_.exists() ? context_.can().evictable : nullptr; }
  // The driver has lost what the context has.
  void Lose(const GpuError& error) { Poison(error.status, error.text); }
  // Does a kernel wait for host memory? ConsumeOne sees to it.
  bool any_short() const { return work_.any_short(); }
  // Has something happened on the GPU side since the last call that the ring side may be waiting for?
  bool TakeNews() { return work_.TakeNews(); }

 private:
  bool closed() const { return channel_.ring().closed(); }
  Ring ConsumeNext(bool alone);
  Ring EndOf(EntryVerdict verdict);
  bool Full() const { return work_.Full() || channel_.completions().waiting() >= kMaxWaitingCompletions; }
  void Accept(const vgpu_sqe& sqe);
  EntryVerdict Handle(RingEntry& entry, bool alone);
  EntryVerdict HandleChecked(RingEntry& entry, const OpRow& row);
  EntryVerdict OnNoMemory(RingEntry& entry);
  void Violation(CuStatus status, const std::string& text);
  void Poison(CuStatus status, const std::string& text);

  static constexpr size_t kMaxWaitingCompletions = 1024;

  const ChannelCallbacks callbacks_;
  HostMemory unlimited_;
  HostMemory& memory_;
  Channel channel_;
  GpuContext context_;
  VramShare vram_share_;
  Buffers buffers_;
  ModuleLoader loader_;
  ModuleOps modules_;  // behind the context: destroyed first
  StreamWork work_;    // and this before the modules
  VramUse vram_;
  HostMemoryWaits waits_;
  RuntimeOps runtime_;
  BufferOps buffer_ops_;
  MemoryOps memory_ops_;
  TextureOps texture_ops_;
  QueueOps queue_ops_;
  DeviceOps device_ops_;
  const OpTopics topics_;

  std::vector<Op*> behind_;  // of the step
  std::optional<RingEntry> waiting_;
  std::optional<GpuError> refusal_;  // of waiting_: it breaks the protocol
  bool ring_waits_ = false;
  LogLimiter limiter_;
};

}  // namespace vgpud::exec
