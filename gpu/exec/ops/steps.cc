// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "gpu/capability/async_work.h"
#include "gpu/exec/channel/op.h"
#include "gpu/exec/memory/heap.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kChunk = 64 * 1024;

StepResult Failed(const GpuError& error) { return {.done = true, .status = error.status, .text = error.text}; }

StepResult Short(uint64_t bytes) { return {.short_of = bytes}; }

// What making a grid may need beside the one block that there was no room for.
constexpr uint64_t kRoomForGrid = 256 << 10;

GpuResult<std::unique_ptr<GpuGrid>> MakeGrid(Gpu& gpu, const Op& op) {
  const heap::Limit limit(false);
  return gpu.Launch(*op.function, op.shape, op.own, op.max_dynamic_shared);
}

// A kernel that is cut off in the middle of an instruction can't go on.
GpuResult<GpuGrid::Progress> RunWith(GpuGrid& grid, const StopWord& stop, uint64_t budget) {
  try {
    return grid.Run(stop, budget);
  } catch (const std::bad_alloc&) {
    return GpuFail(CuStatus::kOutOfMemory, "the host has no memory for what the kernel does");
  }
}

// What the GPU can go on with when `op` has ended, before a step says so.
void LaunchBehind(Gpu& gpu, const Op& op, std::span<Op* const> behind, const StopWord& stop) {
  AsyncWork* const work = gpu.capabilities().async_work;
  if (work == nullptr) return;
  GpuGrid* before = op.grid.get();
  for (Op* const next : behind) {
    if (stop.Stopped()) return;
    if (!work->LaunchBehind(next->grid, *before, *next->function, next->shape, next->own, next->max_dynamic_shared))
      return;
    before = next->grid.get();
  }
}

struct Range {
  GpuVa address;
  uint64_t bytes;
};

// The device ranges that a copy touches, checked as a whole before its first chunk moves.
GpuResult<void> CheckRanges(const Gpu& gpu, std::initializer_list<Range> ranges) {
  for (const Range& range : ranges)
    if (range.bytes != 0 && !gpu.Contains(range.address, range.bytes))
      return GpuFail(
          CuStatus::kInvalidValue,
          fmt::format("copy or fill of {} bytes at {:#x}: not inside one allocation", range.bytes, Raw(range.address)));
  return {};
}

uint64_t TotalBytes(const Op& op) {
  switch (op.kind) {
    case VGPU_OP_COPY_DEV:
      return op.args[2];
    case VGPU_OP_FILL:
      return (CheckedSize(op.args[2]) * op.args[3]).saturated();
    default:
      return op.own.empty() ? op.span.size() : op.own.size();
  }
}

GpuResult<void> CopyChunk(Gpu& gpu, Op& op, uint64_t bytes) {
  const auto at = [&](uint64_t base) { return GpuVa{base + op.done_bytes}; };
  switch (op.kind) {
    case VGPU_OP_COPY_IN:
    case VGPU_OP_BUF_IN: {
      const std::span<const std::byte> from = op.own.empty() ? op.span : std::span<std::byte>(op.own);
      return gpu.CopyIn(at(op.args[0]), from.subspan(op.done_bytes, bytes));
    }
    case VGPU_OP_COPY_OUT:
    case VGPU_OP_BUF_OUT:
      return gpu.CopyOut(op.span.subspan(op.done_bytes, bytes), at(op.args[0]));
    case VGPU_OP_COPY_DEV:
      return gpu.CopyDev(at(op.args[0]), at(op.args[1]), bytes);
    default:
      return gpu.Fill(at(op.args[0]), MustFit<uint32_t>(op.args[1]), MustFit<uint32_t>(op.args[2]), bytes / op.args[2]);
  }
}

}  // namespace

StepResult StepKernel(Gpu& gpu, Op& op, const StepTerms& terms) {
  if (op.last_chance) gpu.DropCaches();
  if (op.grid == nullptr) {
    try {
      auto grid = MakeGrid(gpu, op);
      if (!grid) return Failed(grid.error());
      op.grid = std::move(*grid);
    } catch (const std::bad_alloc&) {
      return Short(heap::Limit::missing() + kRoomForGrid);
    }
  }
  if (!terms.behind.empty()) LaunchBehind(gpu, op, terms.behind, terms.stop);
  const uint64_t before = op.grid->warp_instructions();
  auto progress = RunWith(*op.grid, terms.stop, terms.budget);
  const uint64_t ran = op.grid->warp_instructions() - before;
  if (!progress) {
    StepResult result = Failed(progress.error());
    result.fault = true;
    result.warp_instructions = ran;
    return result;
  }
  if (*progress == GpuGrid::Progress::kShort) return Short(op.grid->short_of());
  op.grants = 0;
  return {.done = *progress == GpuGrid::Progress::kDone,
          .stopped = *progress == GpuGrid::Progress::kStopped,
          .warp_instructions = ran};
}

StepResult StepWrite(Gpu& gpu, Op& op, const StepTerms&) {
  const auto written = gpu.WriteWord(GpuVa{op.args[0]}, WordBytes(op), op.args[1]);
  if (!written) return Failed(written.error());
  return {.done = true};
}

StepResult StepCopy(Gpu& gpu, Op& op, const StepTerms&) {
  if (op.area_lost)
    return Failed({CuStatus::kInvalidValue, fmt::format("buffer {} was removed while a copy was queued", op.area)});
  const uint64_t total = TotalBytes(op);
  if (!op.started) {
    op.started = true;
    const uint64_t second = op.kind == VGPU_OP_COPY_DEV ? total : 0;
    const auto checked = CheckRanges(gpu, {{GpuVa{op.args[0]}, total}, {GpuVa{op.args[1]}, second}});
    if (!checked) return Failed(checked.error());
  }
  const uint64_t bytes = std::min(kChunk, total - op.done_bytes);
  if (bytes != 0) {
    const auto copied = CopyChunk(gpu, op, bytes);
    if (!copied) return Failed(copied.error());
  }
  op.done_bytes += bytes;
  return {.done = op.done_bytes == total};
}

}  // namespace vgpud::exec
