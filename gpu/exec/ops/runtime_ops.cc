// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/runtime_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "gpu/capability/device_output.h"
#include "gpu/capability/kernel_heap.h"
#include "gpu/capability/tensor_map_maker.h"

namespace vgpud::exec {
namespace {

constexpr size_t kMostPrintedAtOnce = 1 << 20;

}  // namespace

EntryVerdict RuntimeOps::SetLimit(RingEntry& entry) {
  const auto [limit, value, unused, unused_too] = entry.sqe.args;
  (void)unused, (void)unused_too;
  if (limit == VGPU_LIMIT_PRINTF_FIFO) {
    // More than the VF may have is no capacity; the GPU keeps less while others have it.
    if (value > memory_.quota())
      return channel_.Reject(
          entry, CuStatus::kOutOfMemory,
          fmt::format("LIMIT_SET: {} bytes for printf, the VF has {} bytes of host memory", value, memory_.quota()));
    if (DeviceOutput* const output = context_.can().output; output != nullptr) output->SetPrintCapacity(value);
    return channel_.Reply(entry);
  }
  if (limit == VGPU_LIMIT_BUFFER_PART && value < VGPU_BUFFER_PARTS) {
    buffers_.SetPart(MustFit<uint32_t>(value));
    return channel_.Reply(entry);
  }
  if (limit == VGPU_LIMIT_VRAM_PART && value < VGPU_BUFFER_PARTS) {
    if (context_.UseVramPart(MustFit<uint32_t>(value))) return channel_.Reply(entry);
    return channel_.Reject(entry, CuStatus::kNotSupported,
                           fmt::format("LIMIT_SET: device memory can't be in part {}", value));
  }
  if (limit != VGPU_LIMIT_MALLOC_HEAP)
    return channel_.Reject(entry, CuStatus::kInvalidValue, fmt::format("LIMIT_SET: no limit {}", limit));
  if (value > vram_.share().quota())
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("LIMIT_SET: a heap of {} bytes, the VF has {} bytes of VRAM", value, vram_.share().quota()));
  KernelHeap* const heap = context_.can().heap;
  if (heap == nullptr) return channel_.Reply(entry);
  const uint64_t more = heap->HeapBytesAtOnce(value);
  if (const auto verdict = more != 0 ? vram_.Reserve(entry, more, more) : std::nullopt) return *verdict;
  if (!heap->SetHeapBytes(value))
    return channel_.Reject(entry, CuStatus::kInvalidValue,
                           "LIMIT_SET: the heap is in use: set its size before the first kernel that allocates");
  if (more != 0) vram_.share().Use(more);
  return channel_.Reply(entry);
}

EntryVerdict RuntimeOps::ReadPrinted(RingEntry& entry) {
  bool to_stderr = false;
  // The rest next time: the lock is held for no longer copy.
  DeviceOutput* const output = context_.can().output;
  const auto room = entry.span.first(std::min(entry.span.size(), kMostPrintedAtOnce));
  const size_t bytes = output != nullptr ? output->TakePrinted(room, &to_stderr) : 0;
  TellPrinted();
  channel_.ring().ReleasePayload(entry);
  // The text must not be lost to a posted error, which the next other answer will carry.
  if (entry.want())
    channel_.completions().Push(entry.sqe.seqno, 0, {bytes, to_stderr ? VGPU_PRINT_STDERR : VGPU_PRINT_STDOUT});
  return EntryVerdict::kDone;
}

void RuntimeOps::TellPrinted() {
  const DeviceOutput* const output = context_.can().output;
  const auto bytes = static_cast<uint32_t>(output != nullptr ? output->printed_bytes() : 0);
  if (bytes == told_printed_) return;
  told_printed_ = bytes;
  channel_.memory().SetPrinted(bytes);
}

std::optional<EntryVerdict> RuntimeOps::MakeHeap(RingEntry& entry, const FunctionInfo& function) {
  KernelHeap* const heap = function.uses_heap ? context_.can().heap : nullptr;
  const uint64_t bytes = heap != nullptr ? heap->HeapBytesToMake() : 0;
  if (bytes == 0) return std::nullopt;
  const uint64_t need = context_.gpu().AllocationBytes(bytes);
  switch (vram_.share().Reserve(need)) {
    case VramShare::Answer::kAsk:
      return EntryVerdict::kWait;
    case VramShare::Answer::kRefused:
      return channel_.Reject(entry, CuStatus::kOutOfMemory,
                             fmt::format("LAUNCH of {}: its heap of {} bytes exceeds the VF's VRAM; lower the limit "
                                         "cudaLimitMallocHeapSize",
                                         function.name, bytes));
    case VramShare::Answer::kGranted:
      break;
  }
  if (!entry.alone) return EntryVerdict::kAlone;
  if (const auto made = heap->MakeHeap(); !made) return channel_.Reject(entry, made.error());
  vram_.share().Use(need);
  return std::nullopt;
}

EntryVerdict RuntimeOps::MakeTensorMap(RingEntry& entry) {
  TensorMapMaker* const maps = context_.can().tensor_maps;
  if (maps == nullptr) return channel_.Reject(entry, CuStatus::kNotSupported, "this GPU's maps are made in the guest");
  vgpu_tensor_map_request request;
  std::memcpy(&request, entry.span.data(), sizeof request);
  if (const auto made = maps->EncodeTensorMap(request); !made) return channel_.Reject(entry, made.error());
  std::memcpy(entry.span.data(), &request, sizeof request);
  return channel_.Reply(entry);
}

}  // namespace vgpud::exec
