// SPDX-License-Identifier: Apache-2.0
// Streams, and what is ordered by them: the arguments of an operation are checked once, then it waits in its stream.
#pragma once

#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/channel/stream_work.h"
#include "gpu/exec/ops/module_ops.h"
#include "gpu/exec/ops/runtime_ops.h"
#include "gpu/exec/ops/steps.h"
#include "gpu/exec/ops/vram_use.h"

namespace vgpud::exec {

class QueueOps {
 public:
  // All outlive it.
  QueueOps(Channel& channel, GpuContext& context, StreamWork& work, ModuleOps& modules, RuntimeOps& runtime,
           VramUse& vram)
      : channel_(channel), context_(context), work_(work), modules_(modules), runtime_(runtime), vram_(vram) {}

  EntryVerdict CreateStream(RingEntry& entry);
  EntryVerdict DestroyStream(RingEntry& entry);
  EntryVerdict QueryStream(RingEntry& entry);
  EntryVerdict SyncContext(RingEntry& entry) { return work_.Sync(entry); }
  EntryVerdict Launch(RingEntry& entry);
  EntryVerdict CopyIn(RingEntry& entry);
  EntryVerdict Fill(RingEntry& entry);
  EntryVerdict Event(RingEntry& entry);
  EntryVerdict Gate(RingEntry& entry);
  EntryVerdict Value(RingEntry& entry);
  // An operation without anything to check beyond its form.
  EntryVerdict Plain(RingEntry& entry) { return work_.Queue(entry); }

 private:
  Channel& channel_;
  GpuContext& context_;
  StreamWork& work_;
  ModuleOps& modules_;
  RuntimeOps& runtime_;
  VramUse& vram_;
};

template <auto Member>
inline constexpr auto kQueue = &Do<&OpTopics::queue, Member>;
inline constexpr OpRow kQueueRows[] = {
    {VGPU_OP_STREAM_CREATE, "STREAM_CREATE", kQueue<&QueueOps::CreateStream>, {.args = 3, .keeps = true}},
    {VGPU_OP_STREAM_DESTROY, "STREAM_DESTROY", kQueue<&QueueOps::DestroyStream>, {.args = 1}},
    {VGPU_OP_STREAM_QUERY, "STREAM_QUERY", kQueue<&QueueOps::QueryStream>, {.args = 1}},
    {VGPU_OP_STREAM_SYNC, "STREAM_SYNC", kQueue<&QueueOps::Plain>, {.keeps = true}},
    {VGPU_OP_CONTEXT_SYNC, "CONTEXT_SYNC", kQueue<&QueueOps::SyncContext>, {}},
    {VGPU_OP_LAUNCH,
     "LAUNCH",
     kQueue<&QueueOps::Launch>,
     {.args = 1, .payload = PayloadRule::kRequired, .payload_least = sizeof(vgpu_launch), .keeps = true},
     &StepKernel},
    {VGPU_OP_COPY_IN,
     "COPY_IN",
     kQueue<&QueueOps::CopyIn>,
     {.args = 1, .payload = PayloadRule::kOptional, .keeps = true},
     &StepCopy},
    {VGPU_OP_COPY_OUT,
     "COPY_OUT",
     kQueue<&QueueOps::Plain>,
     {.args = 1, .payload = PayloadRule::kOptional, .keeps = true},
     &StepCopy},
    {VGPU_OP_COPY_DEV, "COPY_DEV", kQueue<&QueueOps::Plain>, {.args = 3, .keeps = true}, &StepCopy},
    {VGPU_OP_FILL, "FILL", kQueue<&QueueOps::Fill>, {.args = 4, .keeps = true}, &StepCopy},
    {VGPU_OP_EVENT_RECORD, "EVENT_RECORD", kQueue<&QueueOps::Event>, {.args = 2, .keeps = true}},
    {VGPU_OP_EVENT_WAIT, "EVENT_WAIT", kQueue<&QueueOps::Event>, {.args = 2, .keeps = true}},
    {VGPU_OP_GATE_WAIT, "GATE_WAIT", kQueue<&QueueOps::Gate>, {.args = 2, .keeps = true}},
    {VGPU_OP_WAIT_VALUE, "WAIT_VALUE", kQueue<&QueueOps::Value>, {.args = 4, .keeps = true}},
    {VGPU_OP_WRITE_VALUE, "WRITE_VALUE", kQueue<&QueueOps::Value>, {.args = 3, .keeps = true}, &StepWrite},
};

}  // namespace vgpud::exec
