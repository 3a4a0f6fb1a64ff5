// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/queue_ops.h"

#include <fmt/core.h>

#include <cstring>

#include "base/checked.h"

namespace vgpud::exec {
namespace {

// A COPY_IN up to this long is copied out of the payload at once, so that its span, and all that come behind it, do not
// wait for the stream: a longer one only where there is something to wait for.
constexpr size_t kSmallCopy = 4096;
constexpr size_t kLongestOwn = 64 << 10;
constexpr uint32_t kMaxParamBytes = 32764;  // CUDA C++ programming guide, "Function parameters"

std::vector<std::byte> CopyOf(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

EntryVerdict QueueOps::CreateStream(RingEntry& entry) {
  const uint64_t id = entry.sqe.args[0];
  const uint64_t flags = entry.sqe.args[1];
  if (work_.streams().Full())
    return channel_.Reject(
        entry, CuStatus::kOutOfMemory,
        fmt::format("STREAM_CREATE: there are {} streams, as many as a channel may have", Streams::kMaxStreams));
  if (id > UINT32_MAX || (flags & ~uint64_t{VGPU_STREAM_NON_BLOCKING}) != 0 ||
      !work_.streams().Create(MustFit<uint32_t>(id), flags == 0))
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("STREAM_CREATE: stream {} is taken or reserved, or flags {:#x} unknown", id, flags));
  return channel_.Reply(entry, {id});
}

EntryVerdict QueueOps::DestroyStream(RingEntry& entry) {
  const uint64_t id = entry.sqe.args[0];
  if (id > UINT32_MAX || !work_.streams().Destroy(MustFit<uint32_t>(id)))
    return channel_.Reject(entry, CuStatus::kInvalidHandle, fmt::format("STREAM_DESTROY: no created stream {}", id));
  return channel_.Reply(entry);
}

// Entries are taken in order: what was there before it is in its stream, or done.
EntryVerdict QueueOps::QueryStream(RingEntry& entry) {
  const uint64_t id = entry.sqe.args[0];
  const Stream* stream = id <= UINT32_MAX ? work_.streams().Find(MustFit<uint32_t>(id)) : nullptr;
  if (stream == nullptr)
    return channel_.Reject(entry, CuStatus::kInvalidHandle, fmt::format("STREAM_QUERY: no stream {}", id));
  return channel_.Reply(entry, {stream->queue.empty() ? 0u : 1u});
}

EntryVerdict QueueOps::CopyIn(RingEntry& entry) {
  auto op = MakeOp(entry.sqe);
  const bool small = entry.span.size() <= (work_.streams().queued() == 0 ? kSmallCopy : kLongestOwn);
  if (small) op->own = CopyOf(entry.span);
  return work_.Queue(entry, std::move(op), !small);
}

EntryVerdict QueueOps::Launch(RingEntry& entry) {
  const LoadedFunction* function = modules_.FindFunction(entry.sqe.args[0]);
  if (function == nullptr)
    return channel_.Reject(entry, CuStatus::kInvalidHandle, fmt::format("LAUNCH: no function {}", entry.sqe.args[0]));
  vgpu_launch launch;
  std::memcpy(&launch, entry.span.data(), sizeof launch);
  if ((launch.flags & ~VGPU_LAUNCH_COOPERATIVE) != 0 || launch.cluster >> 24 != 0 ||
      launch.param_bytes > kMaxParamBytes || launch.param_bytes > entry.span.size() - sizeof launch)
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("LAUNCH of {}: param_bytes {} in a payload of {}, flags {:#x}, cluster {:#x}", function->info->name,
                    launch.param_bytes, entry.span.size(), launch.flags, launch.cluster));
  if (const auto verdict = runtime_.MakeHeap(entry, *function->info)) return *verdict;
  LaunchShape shape{};
  std::memcpy(shape.grid, launch.grid, sizeof launch.grid);
  std::memcpy(shape.block, launch.block, sizeof launch.block);
  shape.dynamic_shared = launch.dynamic_shared;
  shape.cooperative = (launch.flags & VGPU_LAUNCH_COOPERATIVE) != 0;
  for (uint32_t d = 0; d < 3; ++d) shape.cluster[d] = launch.cluster >> (8 * d) & 255;
  if (const auto verdict = vram_.MakeRoom(entry, *function->info, shape)) return *verdict;
  auto op = MakeOp(entry.sqe);
  op->function = function->info;
  op->max_dynamic_shared = function->max_dynamic_shared;
  op->shape = shape;
  op->own = CopyOf(entry.span.subspan(sizeof launch, launch.param_bytes));
  return work_.Queue(entry, std::move(op), false);
}

EntryVerdict QueueOps::Fill(RingEntry& entry) {
  const auto [address, value, element, count] = entry.sqe.args;
  (void)address;
  const bool size_ok = element == 1 || element == 2 || element == 4;
  if (!size_ok || value > UINT32_MAX || count > (uint64_t{1} << 48))
    return channel_.Reject(entry, CuStatus::kInvalidValue,
                           fmt::format("FILL: value {:#x}, {} elements of {} bytes", value, count, element));
  return work_.Queue(entry);
}

EntryVerdict QueueOps::Event(RingEntry& entry) {
  const bool wait = entry.sqe.op == VGPU_OP_EVENT_WAIT;
  const uint64_t slot = entry.sqe.args[0];
  const uint64_t generation = entry.sqe.args[1];
  const bool slot_ok = EventTable::ValidSlot(slot);
  if (!slot_ok || (wait ? !work_.streams().events().Submitted(slot, generation) : generation == 0))
    return channel_.Reject(entry, CuStatus::kInvalidValue,
                           fmt::format("{}: slot {}, generation {}{}", FindOp(entry.sqe.op)->name, slot, generation,
                                       slot_ok && wait ? " has not been recorded" : ""));
  return work_.Queue(entry);
}

EntryVerdict QueueOps::Gate(RingEntry& entry) {
  const auto [gate, generation, unused, unused_too] = entry.sqe.args;
  (void)unused, (void)unused_too;
  if (!ChannelMemory::HasGate(gate) || generation == 0)
    return channel_.Reject(entry, CuStatus::kInvalidValue,
                           fmt::format("GATE_WAIT: gate {}, generation {}", gate, generation));
  return work_.Queue(entry);
}

EntryVerdict QueueOps::Value(RingEntry& entry) {
  const auto [address, value, bytes, condition] = entry.sqe.args;
  const char* name = FindOp(entry.sqe.op)->name;
  if ((bytes != 4 && bytes != 8) || (bytes == 4 && value > UINT32_MAX) || condition > VGPU_WAIT_NOR)
    return channel_.Reject(entry, CuStatus::kInvalidValue,
                           fmt::format("{}: value {:#x} of {} bytes, condition {}", name, value, bytes, condition));
  if (const auto word = context_.gpu().ReadWord(GpuVa{address}, MustFit<uint32_t>(bytes)); !word)
    return channel_.Reject(entry, word.error().status, fmt::format("{}: {}", name, word.error().text));
  return work_.Queue(entry);
}

}  // namespace vgpud::exec
