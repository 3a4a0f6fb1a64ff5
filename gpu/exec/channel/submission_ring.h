// SPDX-License-Identifier: Apache-2.0
// The ring of submissions and their payload: what the guest has produced, what was taken, and what it may use again.
#pragma once

#include <cstdint>
#include <utility>

#include "gpu/exec/channel/op_table.h"
#include "gpu/exec/memory/channel_memory.h"
#include "gpu/exec/memory/payload_window.h"

namespace vgpud::exec {

class SubmissionRing {
 public:
  explicit SubmissionRing(ChannelMemory& memory) : memory_(memory), payload_(memory.payload_bytes()) {}

  // Looks at the guest's tail. Entries to take; more than VGPU_SQ_ENTRIES: the tail is wrong.
  uint32_t Look() {
    seen_tail_ = memory_.SqTail();
    return seen_tail_ - head_;
  }
  // Has the guest produced since the last Look?
  bool Changed() const { return memory_.SqTail() != seen_tail_; }
  // The same, and Changed still compares with the last Look.
  uint32_t Peekable() const { return memory_.SqTail() - head_; }
  uint32_t head() const { return head_; }
  uint32_t seen_tail() const { return seen_tail_; }
  // The next entry, copied.
  vgpu_sqe Peek() const { return memory_.ReadSqe(head_); }
  // It is taken. What is behind it counts as not looked at, `unseen`.
  void Take(bool unseen = false);

  // The seqno that the next entry must have; then `seqno` + 1.
  uint64_t Expect(uint64_t seqno) { return std::exchange(next_seqno_, seqno + 1); }
  // Gives `entry` its payload. False: the guest names a wrong place.
  bool TakePayload(RingEntry& entry);
  void ReleasePayload(RingEntry& entry) { Release(std::exchange(entry.span_id, 0)); }
  // 0: nothing.
  void Release(uint64_t span_id);
  uint64_t released() const { return payload_.released(); }

  // Tells the guest what of ring and payload it may use again. It is told by itself of much.
  void TellRoom();
  // The channel area goes away.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  ChannelMemory& memory_;
  PayloadWindow payload_;
  uint32_t head_ = 0;
  uint32_t seen_tail_ = 0;
  uint32_t told_head_ = 0;
  uint64_t told_released_ = 0;
  uint64_t next_seqno_ = 1;
  bool closed_ = false;
};

}  // namespace vgpud::exec
