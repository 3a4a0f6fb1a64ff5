// SPDX-License-Identifier: Apache-2.0
// What kernels reach through the device runtime: their output on its way to the guest, and the heap of malloc.
#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"
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
    gpu_->SetPrintCapacity(value);
    return Reply(entry);
  }
  if (limit == VGPU_LIMIT_BUFFER_PART && value < VGPU_BUFFER_PARTS) {
    buffer_part_ = MustFit<uint32_t>(value);
    return Reply(entry);
  }
  if (limit == VGPU_LIMIT_VRAM_PART && value < VGPU_BUFFER_PARTS) {
    if (has_context_ || !gpu_->UseVramPart(MustFit<uint32_t>(value)))
      return Reject(entry, CuStatus::kNotSupported, fmt::format("LIMIT_SET: device memory can't be in part {}", value));
    vram_part_ = MustFit<uint32_t>(value);
    return Reply(entry);
  }
  if (limit != VGPU_LIMIT_MALLOC_HEAP)
    return Reject(entry, CuStatus::kInvalidValue, fmt::format("LIMIT_SET: no limit {}", limit));
  if (value > vram_.quota())
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("LIMIT_SET: a heap of {} bytes, the VF has {} bytes of VRAM", value, vram_.quota()));
  const uint64_t more = gpu_->HeapBytesAtOnce(value);
  if (const auto verdict = more != 0 ? ReserveVram(entry, more, more) : std::nullopt) return *verdict;
  if (!gpu_->SetHeapBytes(value))
    return Reject(entry, CuStatus::kInvalidValue,
                  "LIMIT_SET: the heap is in use: set its size before the first kernel that allocates");
  if (more != 0) vram_.Use(more);
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoPrintRead(Entry& entry) {
  bool to_stderr = false;
  // The rest next time: the lock is held for no longer copy.
  const size_t bytes = gpu_->TakePrinted(entry.span.first(std::min(entry.span.size(), kMostPrintedAtOnce)), &to_stderr);
  if (callbacks_.drill != nullptr) callbacks_.drill->AddPrinted(entry.span.first(bytes));
  TellPrinted();
  ReleaseSpan(entry.span_id);
  // The text must not be lost to a posted error, which the next other answer will carry.
  if (entry.want()) completions_.Push(entry.sqe.seqno, 0, {bytes, to_stderr ? VGPU_PRINT_STDERR : VGPU_PRINT_STDOUT});
  return Verdict::kDone;
}

void ChannelEngine::TellPrinted() {
  const auto bytes = static_cast<uint32_t>(gpu_->printed_bytes());
  if (bytes == told_printed_) return;
  told_printed_ = bytes;
  memory_.SetPrinted(bytes);
}

// Before the first launch of a kernel that allocates. nullopt: the heap is there.
std::optional<ChannelEngine::Verdict> ChannelEngine::MakeHeapFor(Entry& entry, const FunctionInfo& function) {
  const uint64_t bytes = function.uses_heap ? gpu_->HeapBytesToMake() : 0;
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
  if (const auto made = gpu_->MakeHeap(); !made) return Reject(entry, made.error());
  vram_.Use(need);
  return std::nullopt;
}

}  // namespace vgpud::exec
