// SPDX-License-Identifier: Apache-2.0
// What is done with buffers: copies, and their addresses for kernels.
#pragma once

#include <optional>

#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/stream_work.h"
#include "gpu/exec/ops/buffers.h"
#include "gpu/exec/ops/steps.h"

namespace vgpud::exec {

class BufferOps {
 public:
  // All outlive it.
  BufferOps(Channel& channel, StreamWork& work, Buffers& buffers) : channel_(channel), work_(work), buffers_(buffers) {}

  EntryVerdict Copy(RingEntry& entry);
  EntryVerdict Address(RingEntry& entry);

 private:
  // nullopt: *area is complete.
  std::optional<EntryVerdict> Find(RingEntry& entry, uint64_t id, GuestArea** area);

  Channel& channel_;
  StreamWork& work_;
  Buffers& buffers_;
};

template <auto Member>
inline constexpr auto kBuffer = &Do<&OpTopics::buffers, Member>;
inline constexpr OpRow kBufferRows[] = {
    {VGPU_OP_BUF_IN, "BUF_IN", kBuffer<&BufferOps::Copy>, {.args = 4, .keeps = true}, &StepCopy},
    {VGPU_OP_BUF_OUT, "BUF_OUT", kBuffer<&BufferOps::Copy>, {.args = 4, .keeps = true}, &StepCopy},
    {VGPU_OP_BUF_ADDRESS, "BUF_ADDRESS", kBuffer<&BufferOps::Address>, {.args = 1, .exclusive = true}},
};

}  // namespace vgpud::exec
