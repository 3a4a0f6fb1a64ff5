// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/turns.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"

namespace vgpud::rewrite {
namespace {

// Blocks of one launch: at the end of a turn the GPU still has to begin each that is left, which returns at once. And
// no sum of coordinates needs more than 32 bits.
constexpr uint64_t kMostBlocks = 1u << 20;

}  // namespace

GridTurns::GridTurns(const KernelPlan& plan, const uint32_t (&grid)[3], uint32_t threads, uint32_t dynamic_shared,
                     uint32_t slots)
    : grid_{grid[0], grid[1], grid[2]},
      total_(uint64_t{grid[0]} * grid[1] * grid[2]),
      pieces_(plan.pieces),
      slots_(slots),
      slot_bytes_(SlotBytes(plan, threads, dynamic_shared)),
      dynamic_shared_(dynamic_shared) {}

GridTurns::Launch GridTurns::NextPiece(uint64_t most) const {
  Launch launch;
  Turn& turn = launch.turn;
  most = std::clamp<uint64_t>(most, 1, kMostBlocks);
  const uint64_t row = grid_[0], plane = row * grid_[1];
  const uint64_t x = begun_ % row, y = begun_ / row % grid_[1], z = begun_ / plane;
  uint64_t size[3] = {row, 1, 1};
  if (x != 0 || most < row) {
    size[0] = std::min(most, row - x);
  } else if (y != 0 || most < plane) {
    size[1] = std::min(most / row, grid_[1] - y);
  } else {
    size[1] = grid_[1];
    size[2] = std::min(most / plane, grid_[2] - z);
  }
  const uint64_t first[3] = {x, y, z};
  for (size_t i = 0; i < 3; ++i) {
    turn.first[i] = MustFit<uint32_t>(first[i]);
    launch.grid[i] = MustFit<uint32_t>(size[i]);
    turn.grid[i] = grid_[i];
  }
  turn.blocks = launch.blocks = MustFit<uint32_t>(size[0] * size[1] * size[2]);
  return launch;
}

GridTurns::Launch GridTurns::Next(uint64_t most) const {
  if (pieces_) return NextPiece(most);
  Launch launch;
  Turn& turn = launch.turn;
  const uint64_t row = begun_ / grid_[0];
  turn.first[0] = MustFit<uint32_t>(begun_ % grid_[0]);
  turn.first[1] = MustFit<uint32_t>(row % grid_[1]);
  turn.first[2] = MustFit<uint32_t>(row / grid_[1]);
  std::copy(std::begin(grid_), std::end(grid_), turn.grid);
  turn.blocks = MustFit<uint32_t>(std::min(total_ - begun_, kMostBlocks));
  turn.going_on = MustFit<uint32_t>(left_.size());
  turn.slots = slots_;
  turn.dynamic_shared = dynamic_shared_;
  turn.slot_bytes = slot_bytes_;
  launch.blocks = launch.grid[0] = turn.blocks + turn.going_on;
  launch.control.assign(control_words(), 0);
  uint32_t* list = launch.control.data() + 2;
  uint32_t* taken = list + slots_;
  for (const uint32_t slot : left_) {
    *list++ = slot;
    taken[slot] = 1;
  }
  for (uint32_t slot = 0; slot < slots_; ++slot)
    if (taken[slot] == 0) *list++ = slot;
  return launch;
}

GpuResult<void> GridTurns::Note(const Launch& launch, std::span<const uint32_t> control) {
  const auto wrong = [](std::string_view what, uint64_t value) {
    return GpuFail(CuStatus::kLaunchFailed,
                   fmt::format("the progress of a kernel was overwritten: {} = {}", what, value));
  };
  if (control.size() != control_words()) return wrong("words", control.size());
  if (pieces_) {
    begun_ += launch.blocks;
    return {};
  }
  const uint32_t begun = control[0];
  if (begun > launch.blocks) return wrong("begun blocks", begun);
  std::vector<uint32_t> left;
  const auto taken = control.subspan(2 + size_t{slots_});
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    if (taken[slot] > 1) return wrong("a slot's word", taken[slot]);
    if (taken[slot] == 1) left.push_back(slot);
  }
  if (left.size() > uint64_t{launch.turn.going_on} + begun) return wrong("saved blocks", left.size());
  begun_ += begun - std::min(begun, launch.turn.going_on);
  left_ = std::move(left);
  return {};
}

GpuResult<void> RunInTurns(GridTurns& grid, const std::function<GpuResult<void>(GridTurns::Launch&)>& run,
                           const std::function<uint64_t()>& most) {
  while (!grid.done()) {
    GridTurns::Launch launch = grid.Next(most());
    if (auto ran = run(launch); !ran) return ran;
    if (auto noted = grid.Note(launch, launch.control); !noted) return noted;
  }
  return {};
}

}  // namespace vgpud::rewrite
