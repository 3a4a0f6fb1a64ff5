// SPDX-License-Identifier: Apache-2.0
// The channel's logic: takes entries out of the ring, checks them, keeps the streams, answers. No threads and no
// waiting in here: the executor (gpu/exec/executor.h) serialises all calls with one lock, except RunStep, which runs
// outside of it so that a kernel never holds up the ring.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "gpu/exec/completions.h"
#include "gpu/exec/memory/area.h"
#include "gpu/exec/memory/payload_window.h"
#include "gpu/exec/memory/vram_share.h"
#include "gpu/exec/modules.h"
#include "gpu/exec/op_table.h"
#include "gpu/exec/preempt_drill.h"
#include "gpu/exec/streams.h"

namespace vgpud::exec {

// Loading a module, or a kernel of one, outside of the lock.
struct LoadJob {
  GpuModule* module = nullptr;  // whose kernel `function` it is; nullptr: `image`
  std::string function;
  std::span<const std::byte> image;
  GpuVa managed{};  // where its managed variables are to be, managed_bytes of them; 0: device memory
  uint64_t managed_bytes = 0;
  std::shared_ptr<AreaUsers> area = {};  // that the managed variables are in; nullptr: in none
  uint64_t code_bytes = 0;               // that were read of it; with the result
  bool taken = false;
  std::optional<GpuResult<std::unique_ptr<GpuModule>>> result;
  // The module's VRAM: RunJob asks, and waits for the ring side to answer.
  enum : uint32_t { kNobodyAsks, kAsked, kYes, kNo };
  std::atomic<uint32_t> vram{kNobodyAsks};
  uint64_t vram_bytes = 0;
};

class ChannelEngine {
 public:
  struct Callbacks {
    std::function<void()> interrupt;                             // raise the guest's interrupt
    std::function<void()> exclusive;                             // returns when no step is running (lock still held)
    std::function<void(const std::function<void()>&)> unlocked;  // does that without the lock; nullptr: with it
    std::function<std::unique_ptr<Gpu>()> make_gpu;              // a fresh, empty context
    std::function<uint64_t()> now_ns;                            // CLOCK_MONOTONIC, for event timestamps
    PreemptDrill* drill = nullptr;                               // outlives the engine
    std::function<void()> progress;                              // wake the ring side; any thread
    HostMemory* memory = nullptr;                                // outlives the engine; nullptr: without a limit
    bool asks_before_loads = false;                              // somebody answers TakeLoadRequest
    std::function<void(bool)> context;                           // the guest process has one now, or none any more
  };
  ChannelEngine(ChannelMemory memory, uint64_t vram_quota, Callbacks callbacks);

  // --- ring side ---
  enum class Ring {
    kMore,     // one entry was taken
    kPart,     // a part of a long one was done: look whether there is something else, then call again
    kEmpty,    // nothing to take (or the ring index is broken: look again when the guest rings)
    kWaiting,  // an entry, or the whole ring, waits for progress: call again after some
    kLink,     // an entry names a buffer that may be announced on the link: read that, then call again
  };
  // `only_brief`: nothing but a new entry that a microsecond is enough for, in which the lock is kept; all else is left
  // where it is, with kEmpty.
  Ring ConsumeOne(bool only_brief = false);
  // Has the guest produced since ConsumeOne looked?
  bool RingChanged() const { return !closed_ && memory_.SqTail() != seen_tail_; }
  // Tells the guest what of the ring and the payload it may use again. It is told by itself of much, with each
  // completion, and when there is nothing to take; before anything else that may take long this has to be called.
  void TellRoom();
  // Tells the guest that we sleep (1) or are awake (0), and TellRoom.
  void SetNeedWakeup(bool sleeping);
  // Does work wait for a word in memory? Nobody tells when it changes: ConsumeOne looks.
  bool WaitsForValues() const { return !closed_ && streams_.values_queued(); }
  // Completions that wait for the guest to make room.
  bool CompletionsWaiting() const { return !closed_ && completions_.waiting() != 0; }
  void FlushCompletions();
  // Did the guest sleep when it was last told something? Once per time.
  bool TakeInterrupted() { return completions_.TakeInterrupted(); }

  // --- areas ---
  void AddBuffer(uint32_t id, GuestArea* area) { buffers_[id] = {area, false}; }
  // Queued operations on it will fail, kernels that use it as well, and a module that is being loaded into it. No step
  // may be running. Returns when no job is inside.
  void DropBuffer(uint32_t id);
  // Where the guest wants the next buffers to be: VGPU_LIMIT_BUFFER_PART.
  uint32_t buffer_part() const { return buffer_part_; }
  // The channel area goes away: forgets all work. No step may be running.
  void Close();

  // --- GPU side ---
  struct StepResult {
    bool done = false;
    bool fault = false;  // poisons the context
    CuStatus status = CuStatus::kSuccess;
    std::string text;
    uint64_t warp_instructions = 0;
    uint64_t short_of = 0;  // bytes of host memory without which it gets nowhere
  };
  bool HasWorkForGpu() const { return streams_.HasWorkForGpu(); }
  Op* NextForGpu() { return streams_.NextForGpu(); }
  // Before a step of `op`: what may be launched behind it (Gpu::LaunchBehind); none without `more`.
  void FindBehind(const Op& op, bool more) {
    behind_.clear();
    // It could take the room of another stream.
    if (more && streams_with_room_ <= 1) streams_.FindBehind(op, behind_);
  }
  // Advances `op` by at most `budget` warp instructions or 64 KiB. On the GPU only, without the lock.
  StepResult RunStep(Op& op, const StopWord& stop, uint64_t budget);
  // Is work on the GPU that no step waits for (Gpu::Busy)? It is over when the other one returns; on the GPU only,
  // without the lock.
  bool GpuBusy() const { return gpu_->Busy(); }
  void WaitUntilGpuIdle() { gpu_->WaitUntilIdle(); }
  // nullptr: memory stays on the card. While nobody else uses the Gpu.
  Evictable* evictable() const { return gpu_ != nullptr ? gpu_->evictable() : nullptr; }
  // The driver has lost what the context has.
  void Lose(const GpuError& error) { Poison(error.status, error.text); }
  // Takes the result in. Returns true when a kernel has finished.
  bool FinishStep(Op& op, StepResult result);
  // Host work that takes long (loading a module): HasJob, TakeJob, then RunJob without the lock while no step is
  // running.
  bool HasJob() const { return job_.has_value() && !job_->taken; }
  // No step may begin.
  bool JobPending() const { return job_.has_value() && !job_->result; }
  using Job = LoadJob;
  Job& TakeJob() {
    job_->taken = true;
    return *job_;
  }
  GpuResult<std::unique_ptr<GpuModule>> RunJob(Job& job);

  // An image may be loaded only when OnLoadReply says so: true once for each.
  bool TakeLoadRequest();
  void OnLoadReply();
  // Bytes of code that loads have read since the last call, to be paid for.
  uint64_t TakeCodeRead() { return std::exchange(code_read_, 0); }

  VramShare& vram() { return vram_; }
  HostMemory& memory() { return *callbacks_.memory; }
  // Does a kernel wait for host memory? ConsumeOne sees to it.
  bool any_short() const { return any_short_; }
  bool ring_waits() const { return ring_waits_; }
  // Has something happened on the GPU side since the last call that the ring side may be waiting for?
  bool TakeNews() { return std::exchange(news_, false); }
  uint32_t sticky_error() const { return static_cast<uint32_t>(sticky_); }

 private:
  using Verdict = EntryVerdict;
  using Entry = RingEntry;
  struct Ops;
  friend const OpRow* FindOp(uint32_t op);
  struct Sync {
    uint64_t seqno;
    bool want;
  };

  // channel_engine.cc
  void MakeGpu();
  Ring ConsumeNext();
  Ring ConsumeBrief();
  bool Full() const;
  void Accept(const vgpu_sqe& sqe);
  Verdict Handle(Entry& entry);
  Verdict HandleChecked(Entry& entry, const OpRow& row);
  Verdict OnNoMemory(Entry& entry);
  void Violation(CuStatus status, std::string text);
  void Poison(CuStatus status, const std::string& text);
  void ReleaseSpan(uint64_t span_id);
  void Complete(uint64_t seqno, bool want, CuStatus status, const CompletionValues& values, std::string_view text);
  Verdict Reply(Entry& entry, const CompletionValues& values = {});
  Verdict Reject(Entry& entry, CuStatus status, std::string_view text);
  Verdict Reject(Entry& entry, const GpuError& error) { return Reject(entry, error.status, error.text); }
  void FinishOp(std::unique_ptr<Op> op, CuStatus status, std::string_view text);
  void Took();
  void ReachHeads();
  void CompleteSyncs();

  // engine_memory.cc
  std::optional<Verdict> AdmitEntry(Entry& entry);
  void ServeShortOps();
  Op* NextShortOp();
  bool OthersHoldMemory(const Op& op);
  bool SetShort(Op& op, uint64_t bytes);
  bool AdmitJobVram(uint64_t bytes);
  void AnswerJobVram(bool yes);

  // engine_loads.cc
  Verdict DoModuleBegin(Entry& entry);
  Verdict DoModuleData(Entry& entry);
  Verdict DoModuleLoad(Entry& entry);
  bool MayLoad(uint64_t id);
  void DropJob(uint64_t id);

  // engine_ops.cc: one handler per operation
  Verdict DoNop(Entry& entry);
  Verdict DoMemAlloc(Entry& entry);
  Verdict DoMemFree(Entry& entry);
  std::optional<Verdict> ReserveVram(Entry& entry, uint64_t bytes, uint64_t need);
  Verdict DoMemCreate(Entry& entry);
  Verdict DoMemRelease(Entry& entry);
  Verdict DoMemMap(Entry& entry);
  Verdict DoMemUnmap(Entry& entry);
  Verdict DoMemInfo(Entry& entry);
  Verdict DoModuleUnload(Entry& entry);
  Verdict DoModuleFunction(Entry& entry);
  Verdict DoModuleFunctionName(Entry& entry);
  Verdict DoTensorMap(Entry& entry);
  Verdict DoModuleGlobal(Entry& entry);
  Verdict DoFunctionSet(Entry& entry);
  Verdict DoStreamCreate(Entry& entry);
  Verdict DoStreamDestroy(Entry& entry);
  Verdict DoStreamQuery(Entry& entry);
  void SetContext(bool has);
  Verdict DoContextSync(Entry& entry);
  Verdict DoContextReset(Entry& entry);
  Verdict DoDeviceInfo(Entry& entry);
  // engine_device_runtime.cc: what kernels reach through the device runtime
  Verdict DoLimitSet(Entry& entry);
  Verdict DoPrintRead(Entry& entry);
  void TellPrinted();
  std::optional<Verdict> MakeHeapFor(Entry& entry, const FunctionInfo& function);
  // engine_room.cc: memory for what kernels leave when a turn ends
  std::optional<Verdict> MakeRoomFor(Entry& entry, const FunctionInfo& function, const LaunchShape& shape);
  bool GiveUpRoom();
  // engine_buffers.cc: memory that the guest shares
  std::optional<Verdict> FindBuffer(Entry& entry, uint64_t id, GuestArea** area);
  // Of the shared buffer that has all of these bytes; nullptr: none has.
  std::shared_ptr<AreaUsers> UsersOf(GpuVa address, uint64_t bytes) const;
  Verdict DoBufferAddress(Entry& entry);
  Verdict DoBuffer(Entry& entry);
  void ShareBuffersAgain();
  // engine_textures.cc
  Verdict DoTextureCreate(Entry& entry);
  Verdict DoTextureDestroy(Entry& entry);
  // engine_queue.cc: checks of stream-ordered operations
  Verdict DoLaunch(Entry& entry);
  Verdict DoCopyIn(Entry& entry);
  Verdict DoFill(Entry& entry);
  Verdict DoEvent(Entry& entry);
  Verdict DoGate(Entry& entry);
  Verdict DoValue(Entry& entry);
  bool IsOpen(const Op& op) const;
  Verdict DoQueue(Entry& entry);
  Verdict Queue(Entry& entry, std::unique_ptr<Op> op, bool keep_span);

  HostMemory unlimited_;
  ChannelMemory memory_;
  Callbacks callbacks_;
  Completions completions_;
  PayloadWindow payload_;
  VramShare vram_;
  std::unique_ptr<Gpu> gpu_;
  Modules modules_;  // behind gpu_: destroyed first
  Streams streams_;
  struct Buffer {
    GuestArea* area;
    bool shared;      // kernels reach it
    GpuVa address{};  // there
  };
  std::vector<Op*> behind_;  // of the step
  std::unordered_map<uint32_t, Buffer> buffers_;
  uint32_t buffer_part_ = 0;
  uint32_t vram_part_ = 0;
  size_t streams_with_room_ = 0;
  uint64_t room_refused_ = UINT64_MAX;  // so much was not to be had (engine_room.cc)
  std::deque<Sync> syncs_;
  std::optional<Entry> waiting_;
  std::optional<Job> job_;
  enum class Permit { kNone, kWanted, kAsked, kGiven };
  Permit permit_ = Permit::kNone;  // to load the module that waiting_ names
  uint64_t code_read_ = 0;

  uint32_t head_ = 0;
  uint32_t seen_tail_ = 0;
  uint32_t told_head_ = 0;
  uint64_t told_released_ = 0;
  uint64_t next_seqno_ = 1;
  size_t own_bytes_ = 0;  // copied out of the payload by queued operations
  CuStatus sticky_ = CuStatus::kSuccess;
  CuStatus posted_error_ = CuStatus::kSuccess;
  uint32_t told_printed_ = 0;
  bool has_context_ = false;
  bool any_short_ = false;
  bool serve_next_short_ = false;  // when the one that has been served has had a step
  bool closed_ = false;
  bool ring_waits_ = false;
  bool news_ = false;
  LogLimiter limiter_;
};

}  // namespace vgpud::exec
