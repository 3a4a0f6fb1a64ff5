// SPDX-License-Identifier: Apache-2.0
// Stream-ordered operations: their arguments are checked once, then they wait in their stream.
#include <fmt/core.h>

#include <cstring>

#include "base/checked.h"
#include "gpu/exec/channel_engine.h"

namespace vgpud::exec {
namespace {

// A COPY_IN up to this long is copied out of the payload at once, so that its span, and all that come behind it, do not
// wait for the stream: a longer one only where there is something to wait for.
constexpr size_t kSmallCopy = 4096;
constexpr size_t kLongestOwn = 64 << 10;
constexpr uint32_t kMaxParamBytes = 32764;  // CUDA C++ programming guide, "Function parameters"

std::vector<std::byte> CopyOf(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

std::unique_ptr<Op> MakeOp(const vgpu_sqe& sqe) {
  auto op = std::make_unique<Op>();
  op->kind = sqe.op;
  op->want_completion = (sqe.flags & VGPU_SQE_WANT_COMPLETION) != 0;
  op->seqno = sqe.seqno;
  std::copy(std::begin(sqe.args), std::end(sqe.args), op->args.begin());
  return op;
}

ChannelEngine::Verdict ChannelEngine::Queue(Entry& entry, std::unique_ptr<Op> op, bool keep_span) {
  Stream* stream = streams_.Find(entry.sqe.stream);
  if (stream == nullptr)
    return Reject(entry, CuStatus::kInvalidHandle,
                  fmt::format("{}: no stream {}", FindOp(op->kind)->name, entry.sqe.stream));
  if (keep_span) {
    op->span_id = entry.span_id;
    op->span = entry.span;
    op->area = 0;
  }
  const Op& queued = *op;
  streams_.Push(*stream, std::move(op));
  // Nothing below throws.
  if (!keep_span) ReleaseSpan(entry.span_id);
  own_bytes_ += queued.own.size();
  if (queued.kind == VGPU_OP_EVENT_RECORD) streams_.events().Submit(queued.args[0], queued.args[1]);
  return Verdict::kDone;
}

ChannelEngine::Verdict ChannelEngine::DoQueue(Entry& entry) {
  return Queue(entry, MakeOp(entry.sqe), !entry.span.empty());
}

ChannelEngine::Verdict ChannelEngine::DoCopyIn(Entry& entry) {
  auto op = MakeOp(entry.sqe);
  const bool small = entry.span.size() <= (streams_.queued() == 0 ? kSmallCopy : kLongestOwn);
  if (small) op->own = CopyOf(entry.span);
  return Queue(entry, std::move(op), !small);
}

ChannelEngine::Verdict ChannelEngine::DoLaunch(Entry& entry) {
  const LoadedFunction* function = modules_.FindFunction(entry.sqe.args[0]);
  if (function == nullptr)
    return Reject(entry, CuStatus::kInvalidHandle, fmt::format("LAUNCH: no function {}", entry.sqe.args[0]));
  vgpu_launch launch;
  std::memcpy(&launch, entry.span.data(), sizeof launch);
  if ((launch.flags & ~VGPU_LAUNCH_COOPERATIVE) != 0 || launch.cluster >> 24 != 0 ||
      launch.param_bytes > kMaxParamBytes || launch.param_bytes > entry.span.size() - sizeof launch)
    return Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("LAUNCH of {}: param_bytes {} in a payload of {}, flags {:#x}, cluster {:#x}", function->info->name,
                    launch.param_bytes, entry.span.size(), launch.flags, launch.cluster));
  if (const auto verdict = MakeHeapFor(entry, *function->info)) return *verdict;
  LaunchShape shape{};
  std::memcpy(shape.grid, launch.grid, sizeof launch.grid);
  std::memcpy(shape.block, launch.block, sizeof launch.block);
  shape.dynamic_shared = launch.dynamic_shared;
  shape.cooperative = (launch.flags & VGPU_LAUNCH_COOPERATIVE) != 0;
  for (uint32_t d = 0; d < 3; ++d) shape.cluster[d] = launch.cluster >> (8 * d) & 255;
  if (const auto verdict = MakeRoomFor(entry, *function->info, shape)) return *verdict;
  auto op = MakeOp(entry.sqe);
  op->function = function->info;
  op->max_dynamic_shared = function->max_dynamic_shared;
  op->shape = shape;
  op->own = CopyOf(entry.span.subspan(sizeof launch, launch.param_bytes));
  return Queue(entry, std::move(op), false);
}

ChannelEngine::Verdict ChannelEngine::DoFill(Entry& entry) {
  const auto [address, value, element, count] = entry.sqe.args;
  (void)address;
  const bool size_ok = element == 1 || element == 2 || element == 4;
  if (!size_ok || value > UINT32_MAX || count > (uint64_t{1} << 48))
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("FILL: value {:#x}, {} elements of {} bytes", value, count, element));
  return DoQueue(entry);
}

ChannelEngine::Verdict ChannelEngine::DoEvent(Entry& entry) {
  const bool wait = entry.sqe.op == VGPU_OP_EVENT_WAIT;
  const uint64_t slot = entry.sqe.args[0];
  const uint64_t generation = entry.sqe.args[1];
  const bool slot_ok = EventTable::ValidSlot(slot);
  if (!slot_ok || (wait ? !streams_.events().Submitted(slot, generation) : generation == 0))
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("{}: slot {}, generation {}{}", FindOp(entry.sqe.op)->name, slot, generation,
                              slot_ok && wait ? " has not been recorded" : ""));
  return DoQueue(entry);
}

ChannelEngine::Verdict ChannelEngine::DoGate(Entry& entry) {
  const auto [gate, generation, unused, unused_too] = entry.sqe.args;
  (void)unused, (void)unused_too;
  if (gate >= VGPU_GATES || generation == 0)
    return Reject(entry, CuStatus::kInvalidValue, fmt::format("GATE_WAIT: gate {}, generation {}", gate, generation));
  return DoQueue(entry);
}

ChannelEngine::Verdict ChannelEngine::DoValue(Entry& entry) {
  const auto [address, value, bytes, condition] = entry.sqe.args;
  const char* name = FindOp(entry.sqe.op)->name;
  if ((bytes != 4 && bytes != 8) || (bytes == 4 && value > UINT32_MAX) || condition > VGPU_WAIT_NOR)
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("{}: value {:#x} of {} bytes, condition {}", name, value, bytes, condition));
  if (const auto word = gpu_->ReadWord(GpuVa{address}, MustFit<uint32_t>(bytes)); !word)
    return Reject(entry, word.error().status, fmt::format("{}: {}", name, word.error().text));
  return DoQueue(entry);
}

}  // namespace vgpud::exec
