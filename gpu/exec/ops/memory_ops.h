// SPDX-License-Identifier: Apache-2.0
// Memory of the device: allocations, memory that is mapped later, and what the VF has left.
#pragma once

#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/ops/vram_use.h"

namespace vgpud::exec {

class MemoryOps {
 public:
  // All outlive it.
  MemoryOps(Channel& channel, GpuContext& context, VramUse& vram) : channel_(channel), context_(context), vram_(vram) {}

  EntryVerdict Alloc(RingEntry& entry);
  EntryVerdict Free(RingEntry& entry);
  EntryVerdict Info(RingEntry& entry);
  EntryVerdict Create(RingEntry& entry);
  EntryVerdict Release(RingEntry& entry);
  EntryVerdict Map(RingEntry& entry);
  EntryVerdict Unmap(RingEntry& entry);

 private:
  Channel& channel_;
  GpuContext& context_;
  VramUse& vram_;
};

template <auto Member>
inline constexpr auto kMemory = &Do<&OpTopics::memory, Member>;
inline constexpr OpRow kMemoryRows[] = {
    {VGPU_OP_MEM_ALLOC, "MEM_ALLOC", kMemory<&MemoryOps::Alloc>, {.args = 1, .exclusive = true, .keeps = true}},
    {VGPU_OP_MEM_FREE, "MEM_FREE", kMemory<&MemoryOps::Free>, {.args = 1, .exclusive = true, .needs_drain = true}},
    {VGPU_OP_MEM_INFO, "MEM_INFO", kMemory<&MemoryOps::Info>, {}},
    {VGPU_OP_MEM_CREATE, "MEM_CREATE", kMemory<&MemoryOps::Create>, {.args = 1, .exclusive = true, .keeps = true}},
    {VGPU_OP_MEM_RELEASE, "MEM_RELEASE", kMemory<&MemoryOps::Release>, {.args = 1, .exclusive = true}},
    {VGPU_OP_MEM_MAP, "MEM_MAP", kMemory<&MemoryOps::Map>, {.args = 4, .exclusive = true, .keeps = true}},
    {VGPU_OP_MEM_UNMAP, "MEM_UNMAP", kMemory<&MemoryOps::Unmap>, {.args = 2, .exclusive = true, .needs_drain = true}},
};

}  // namespace vgpud::exec
