// SPDX-License-Identifier: Apache-2.0
// What kernels reach through the device runtime: their output on its way to the guest, the heap of malloc, limits of
// both, and tensor maps.
#pragma once

#include <cstdint>
#include <optional>

#include "base/host_memory.h"
#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/ops/buffers.h"
#include "gpu/exec/ops/vram_use.h"
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud::exec {

class RuntimeOps {
 public:
  // All outlive it.
  RuntimeOps(Channel& channel, GpuContext& context, VramUse& vram, Buffers& buffers, HostMemory& memory)
      : channel_(channel), context_(context), vram_(vram), buffers_(buffers), memory_(memory) {}

  EntryVerdict SetLimit(RingEntry& entry);
  EntryVerdict ReadPrinted(RingEntry& entry);
  EntryVerdict MakeTensorMap(RingEntry& entry);

  // Before the first launch of a kernel that allocates. nullopt: the heap is there.
  std::optional<EntryVerdict> MakeHeap(RingEntry& entry, const FunctionInfo& function);
  // Tells the guest how much there is to read.
  void TellPrinted();

 private:
  Channel& channel_;
  GpuContext& context_;
  VramUse& vram_;
  Buffers& buffers_;
  HostMemory& memory_;
  uint32_t told_printed_ = 0;
};

template <auto Member>
inline constexpr auto kRuntime = &Do<&OpTopics::runtime, Member>;
inline constexpr OpRow kRuntimeRows[] = {
    {VGPU_OP_LIMIT_SET,
     "LIMIT_SET",
     kRuntime<&RuntimeOps::SetLimit>,
     {.args = 2, .exclusive = true, .no_context = true}},
    {VGPU_OP_PRINT_READ,
     "PRINT_READ",
     kRuntime<&RuntimeOps::ReadPrinted>,
     {.payload = PayloadRule::kRequired, .exclusive = true, .after_fault = true}},
    {VGPU_OP_TENSOR_MAP,
     "TENSOR_MAP",
     kRuntime<&RuntimeOps::MakeTensorMap>,
     {.payload = PayloadRule::kRequired, .payload_least = sizeof(vgpu_tensor_map_request), .exclusive = true}},
};

}  // namespace vgpud::exec
