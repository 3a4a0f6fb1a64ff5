// SPDX-License-Identifier: Apache-2.0
// What the streams of a channel hold: operations from the ring until they end, and the guest's waits for all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "base/host_memory.h"
#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/channel/streams.h"

namespace vgpud::exec {

class StreamWork {
 public:
  // All outlive it. `progress` wakes the I/O thread, `now_ns` is the time of event records.
  StreamWork(Channel& channel, GpuContext& context, HostMemory& memory, const std::function<void()>& progress,
             const std::function<uint64_t()>& now_ns)
      : channel_(channel), context_(context), memory_(memory), progress_(progress), now_ns_(now_ns) {}

  Streams& streams() { return streams_; }
  const Streams& streams() const { return streams_; }
  // Does it hold so much that the ring is left alone?
  bool Full() const;

  // Puts `op`, made of `entry`, into the stream that the entry names. `keep_span`: its payload stays until it ends.
  EntryVerdict Queue(RingEntry& entry, std::unique_ptr<Op> op, bool keep_span);
  // The same with an operation that needs no more than its entry says.
  EntryVerdict Queue(RingEntry& entry);
  // The guest waits for all that is there now.
  EntryVerdict Sync(const RingEntry& entry);

  // An operation that is out of its stream has ended.
  void Finish(std::unique_ptr<Op> op, CuStatus status, std::string_view text);
  // Ends what needs no GPU and has come to the head of its stream, and syncs that have nothing in front any more.
  void ReachHeads();
  // The same, as far as the guest changes by itself what they wait for.
  void ReachOpened() {
    if (streams_.gates_queued() || streams_.values_queued()) ReachHeads();
  }
  // Ends everything with `status`. No step may be running.
  void FailAll(CuStatus status);
  // The same for a reset: records count as done, so that nobody waits for them for ever, and streams are as at first.
  void Reset(CuStatus status);
  // Forgets everything; the guest hears nothing of it. No step may be running.
  void Forget();

  // Something has happened on the GPU side that the ring side may be waiting for.
  void MarkNews() { news_ = true; }
  bool TakeNews() { return std::exchange(news_, false); }
  // Does a kernel wait for host memory (HostMemoryWaits)?
  bool any_short() const { return any_short_; }
  void set_any_short(bool any) { any_short_ = any; }

 private:
  struct Waiting {
    uint64_t seqno;
    bool want;
  };
  bool IsOpen(const Op& op) const;
  void CompleteSyncs();

  Channel& channel_;
  GpuContext& context_;
  HostMemory& memory_;
  const std::function<void()>& progress_;
  const std::function<uint64_t()>& now_ns_;
  Streams streams_;
  std::deque<Waiting> syncs_;
  size_t own_bytes_ = 0;  // copied out of the payload by queued operations
  bool news_ = false;
  bool any_short_ = false;
};

}  // namespace vgpud::exec
