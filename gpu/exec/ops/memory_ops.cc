// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/memory_ops.h"

#include <fmt/core.h>

#include "gpu/capability/late_mapping.h"

namespace vgpud::exec {

EntryVerdict MemoryOps::Alloc(RingEntry& entry) {
  const uint64_t bytes = entry.sqe.args[0];
  const uint64_t need = context_.gpu().AllocationBytes(bytes);
  if (const auto verdict = vram_.Reserve(entry, bytes, need)) return *verdict;
  const auto address = context_.gpu().Alloc(bytes);
  if (!address) return channel_.Reject(entry, address.error());
  vram_.share().Use(need);
  return channel_.Reply(entry, {Raw(*address)});
}

EntryVerdict MemoryOps::Free(RingEntry& entry) {
  const auto freed = context_.gpu().Free(GpuVa{entry.sqe.args[0]});
  if (!freed) return channel_.Reject(entry, freed.error());
  vram_.OnFree(*freed);
  return channel_.Reply(entry);
}

EntryVerdict MemoryOps::Info(RingEntry& entry) {
  const auto info = vram_.share().Query();
  if (!info) return EntryVerdict::kWait;
  return channel_.Reply(entry, {info->free, info->total});
}

EntryVerdict MemoryOps::Create(RingEntry& entry) {
  const uint64_t bytes = entry.sqe.args[0];
  if (bytes == 0 || bytes % LateMapping::kMappingGrain != 0)
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("MEM_CREATE: {} bytes are no multiple of {}", bytes, LateMapping::kMappingGrain));
  LateMapping* const mapping = context_.can().late_mapping;
  if (mapping == nullptr)
    return channel_.Reject(entry, CuStatus::kNotSupported, "MEM_CREATE: this GPU can't map memory to addresses later");
  if (const auto verdict = vram_.Reserve(entry, bytes, bytes)) return *verdict;
  const auto block = mapping->CreateMappable(bytes);
  if (!block) return channel_.Reject(entry, block.error());
  vram_.share().Use(bytes);
  return channel_.Reply(entry, {*block});
}

EntryVerdict MemoryOps::Release(RingEntry& entry) {
  LateMapping* const mapping = context_.can().late_mapping;
  if (mapping == nullptr) return channel_.Reject(entry, CuStatus::kInvalidHandle, "there is no memory to be mapped");
  const auto freed = mapping->ReleaseMappable(entry.sqe.args[0]);
  if (!freed) return channel_.Reject(entry, freed.error());
  vram_.share().Return(*freed);
  return channel_.Reply(entry);
}

EntryVerdict MemoryOps::Map(RingEntry& entry) {
  LateMapping* const mapping = context_.can().late_mapping;
  if (mapping == nullptr) return channel_.Reject(entry, CuStatus::kInvalidHandle, "there is no memory to be mapped");
  const auto [block, offset, address, bytes] = entry.sqe.args;
  const auto mapped = mapping->MapMemory(block, offset, GpuVa{address}, bytes);
  return mapped ? channel_.Reply(entry) : channel_.Reject(entry, mapped.error());
}

EntryVerdict MemoryOps::Unmap(RingEntry& entry) {
  LateMapping* const mapping = context_.can().late_mapping;
  if (mapping == nullptr) return channel_.Reject(entry, CuStatus::kInvalidValue, "nothing is mapped");
  const auto unmapped = mapping->UnmapMemory(GpuVa{entry.sqe.args[0]}, entry.sqe.args[1]);
  return unmapped ? channel_.Reply(entry) : channel_.Reject(entry, unmapped.error());
}

}  // namespace vgpud::exec
