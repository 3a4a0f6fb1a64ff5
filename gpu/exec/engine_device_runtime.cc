// SPDX-License-Identifier: Apache-2.0
// What kernels reach through the device runtime: their output on its way to the guest, and the heap of malloc.
#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"
#include "gpu/capability/device_output.h"
#include "gpu/capability/kernel_heap.h"
#include "gpu/exec/channel_engine.h"

namespace vgpud::exec {
namespace {

constexpr size_t kMostPrintedAtOnce = 1 << 20;

}  // namespace

ChannelEngine::Verdict ChannelEngine::DoLimitSet(Entry& entry) {
  const auto [limit, value, unused, unused_too] = entry.sqe.args;
  (void)unused, (void)unused_too;
  if (limit == VGPU_LIMIT_PRINTF_FIFO) {
    // More than the VF may have is no capacity; the GPU keeps less while others have it.
    if (value > memory().quota())
      return Reject(
          entry, CuStatus::kOutOfMemory,
          fmt::format("LIMIT_SET: {} bytes for printf, the VF has {} bytes of host memory", value, memory().quota()));
    if (DeviceOutput* const output = can().output; output != nullptr) output->SetPrintCapacity(value);
    return Reply(entry);
  }
  if (limit == VGPU_LIMIT_BUFFER_PART && value < VGPU_BUFFER_PARTS) {
    buffer_part_ = MustFit<uint32_t>(value);
    return Reply(entry);
  }
  if (limit != VGPU_LIMIT_MALLOC_HEAP)
    return Reject(entry, CuStatus::kInvalidValue, fmt::format("LIMIT_SET: no limit {}", limit));
  if (value > vram_.quota())
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("LIMIT_SET: a heap of {} bytes, the VF has {} bytes of VRAM", value, vram_.quota()));
  KernelHeap* const heap = can().heap;
  if (heap == nullptr) return Reply(entry);
  const uint64_t more = heap->HeapBytesAtOnce(value);
  if (const auto verdict = more != 0 ? ReserveVram(entry, more, more) : std::nullopt) return *verdict;
  if (!heap->SetHeapBytes(value))
    return Reject(entry, CuStatus::kInvalidValue,
                  "LIMIT_SET: the heap is in use: set its size before the first kernel that allocates");
  if (more != 0) vram_.Use(more);
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoPrintRead(Entry& entry) {
  bool to_stderr = false;
  // The rest next time: the lock is held for no longer copy.
  DeviceOutput* const output = can().output;
  const auto room = entry.span.first(std::min(entry.span.size(), kMostPrintedAtOnce));
  const size_t bytes = output != nullptr ? output->TakePrinted(room, &to_stderr) : 0;
  TellPrinted();
  ReleaseSpan(entry.span_id);
  // The text must not be lost to a posted error, which the next other answer will carry.
  if (entry.want()) completions_.Push(entry.sqe.seqno, 0, {bytes, to_stderr ? VGPU_PRINT_STDERR : VGPU_PRINT_STDOUT});
  return Verdict::kDone;
}

void ChannelEngine::TellPrinted() {
  const DeviceOutput* const output = can().output;
  const auto bytes = static_cast<uint32_t>(output != nullptr ? output->printed_bytes() : 0);
  if (bytes == told_printed_) return;
  told_printed_ = bytes;
  memory_.SetPrinted(bytes);
}

// Before the first launch of a kernel that allocates. nullopt: the heap is there.
std::optional<ChannelEngine::Verdict> ChannelEngine::MakeHeapFor(Entry& entry, const FunctionInfo& function) {
  KernelHeap* const heap = function.uses_heap ? can().heap : nullptr;
  const uint64_t bytes = heap != nullptr ? heap->HeapBytesToMake() : 0;
  if (bytes == 0) return std::nullopt;
  const uint64_t need = gpu_->AllocationBytes(bytes);
  switch (vram_.Reserve(need)) {
    case VramShare::Answer::kAsk:
      return Verdict::kWait;
    case VramShare::Answer::kRefused:
      return Reject(entry, CuStatus::kOutOfMemory,
                    fmt::format("LAUNCH of {}: its heap of {} bytes exceeds the VF's VRAM; lower the limit "
                                "cudaLimitMallocHeapSize",
                                function.name, bytes));
    case VramShare::Answer::kGranted:
      break;
  }
  callbacks_.exclusive();
  if (const auto made = heap->MakeHeap(); !made) return Reject(entry, made.error());
  vram_.Use(need);
  return std::nullopt;
}

}  // namespace vgpud::exec
