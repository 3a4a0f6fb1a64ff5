// SPDX-License-Identifier: Apache-2.0
// The device and the context as a whole.
#pragma once

#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/channel/stream_work.h"
#include "gpu/exec/ops/buffers.h"
#include "gpu/exec/ops/module_ops.h"
#include "gpu/exec/ops/runtime_ops.h"
#include "gpu/exec/ops/vram_use.h"

namespace vgpud::exec {

class DeviceOps {
 public:
  // What a reset concerns beside the channel. All outlive the object.
  struct Context {
    GpuContext& gpu;
    StreamWork& work;
    ModuleOps& modules;
    ModuleLoader& loader;
    RuntimeOps& runtime;
    Buffers& buffers;
    VramUse& vram;
  };
  DeviceOps(Channel& channel, const Context& context) : channel_(channel), context_(context) {}

  EntryVerdict Nothing(RingEntry& entry) { return channel_.Reply(entry); }
  EntryVerdict Info(RingEntry& entry);
  EntryVerdict Reset(RingEntry& entry);

 private:
  Channel& channel_;
  Context context_;
};

template <auto Member>
inline constexpr auto kDevice = &Do<&OpTopics::device, Member>;
inline constexpr OpRow kDeviceRows[] = {
    {VGPU_OP_NOP, "NOP", kDevice<&DeviceOps::Nothing>, {.no_context = true}},
    {VGPU_OP_CONTEXT_RESET, "CONTEXT_RESET", kDevice<&DeviceOps::Reset>, {.exclusive = true, .after_fault = true}},
    {VGPU_OP_DEVICE_INFO,
     "DEVICE_INFO",
     kDevice<&DeviceOps::Info>,
     {.payload = PayloadRule::kRequired,
      .payload_least = sizeof(vgpu_device_info),
      .exclusive = true,
      .no_context = true}},
};

}  // namespace vgpud::exec
