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
      slots_(slots),
      slot_bytes_(SlotBytes(plan, threads, dynamic_shared)),
      dynamic_shared_(dynamic_shared) {}

GridTurns::Launch GridTurns::Next() const {
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
  launch.blocks = turn.blocks + turn.going_on;
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

GpuResult<void> RunInTurns(GridTurns& grid, const std::function<GpuResult<void>(GridTurns::Launch&)>& run) {
  while (!grid.done()) {
    GridTurns::Launch launch = grid.Next();
    if (auto ran = run(launch); !ran) return ran;
    if (auto noted = grid.Note(launch, launch.control); !noted) return noted;
  }
  return {};
}

}  // namespace vgpud::rewrite
