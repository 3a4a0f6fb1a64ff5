// SPDX-License-Identifier: Apache-2.0
// The guest's side of a channel: what was asked, what is answered, and the error that its context has met.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/exec/channel/completions.h"
#include "gpu/exec/channel/op_table.h"
#include "gpu/exec/channel/submission_ring.h"
#include "gpu/exec/memory/channel_memory.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

class Channel {
 public:
  Channel(ChannelMemory area, std::function<void()> interrupt)
      : memory_(area), completions_(memory_, std::move(interrupt)), ring_(memory_) {}

  ChannelMemory& memory() { return memory_; }
  Completions& completions() { return completions_; }
  const Completions& completions() const { return completions_; }
  SubmissionRing& ring() { return ring_; }
  const SubmissionRing& ring() const { return ring_; }

  // Answers `entry` and lets go of its payload: with success, or with the error of an earlier operation that nobody
  // waited for.
  EntryVerdict Reply(RingEntry& entry, const CompletionValues& values = {});
  EntryVerdict Reject(RingEntry& entry, CuStatus status, std::string_view text);
  EntryVerdict Reject(RingEntry& entry, const GpuError& error) { return Reject(entry, error.status, error.text); }
  // An operation has ended. `want`: the guest waits for it; else its error is kept for the next answer.
  void Complete(uint64_t seqno, bool want, CuStatus status, const CompletionValues& values, std::string_view text);

  // The fault that has ended the context: until a reset it answers everything. kSuccess: there is none.
  CuStatus sticky() const { return sticky_; }
  bool poisoned() const { return sticky_ != CuStatus::kSuccess; }
  void SetFault(CuStatus status, const std::string& text);
  void ClearFault();

 private:
  ChannelMemory memory_;
  Completions completions_;
  SubmissionRing ring_;
  CuStatus sticky_ = CuStatus::kSuccess;
  CuStatus posted_error_ = CuStatus::kSuccess;
};

}  // namespace vgpud::exec
