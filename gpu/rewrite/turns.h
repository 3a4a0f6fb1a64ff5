// SPDX-License-Identifier: Apache-2.0
// The host's side of a rewritten kernel: what is left of its grid, turn after turn, whoever launches it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/rewrite/plan.h"

namespace vgpud::rewrite {

// One launch by a program. Pure.
class GridTurns {
 public:
  // `threads`: of one block. `slots`: how many blocks can be left in the middle of a turn (0: none, and always for
  // Rung::kBlocks); those for whom there is no slot run to their end. All that can be left find one if it is twice what
  // the device runs at once, as the slot of a block that goes on is not given to another one in the same turn.
  GridTurns(const KernelPlan& plan, const uint32_t (&grid)[3], uint32_t threads, uint32_t dynamic_shared,
            uint32_t slots);

  bool done() const { return begun_ == total_ && left_.empty(); }
  uint64_t blocks() const { return total_; }
  uint64_t begun() const { return begun_; }
  size_t left_in_the_middle() const { return left_.size(); }
  // Of the control words, and of the slots together: device memory that the launch needs as long as it is not done.
  size_t control_words() const { return pieces_ ? 0 : 2 + size_t{2} * slots_; }
  // Of the control words where the slots lie behind them.
  uint64_t control_bytes() const { return (4 * control_words() + 15) / 16 * 16; }
  uint64_t slot_area_bytes() const { return slots_ * slot_bytes_; }

  // The next launch; not when done(). The caller fills in stop_word, control, expected and saved.
  struct Launch {
    Turn turn;
    uint32_t grid[3] = {0, 1, 1};   // the block and dynamic shared memory as the program's
    uint32_t blocks = 0;            // in it
    std::vector<uint32_t> control;  // to be written to Turn::control before
  };
  // `most`: blocks of a piece, of a kernel with pieces.
  Launch Next(uint64_t most = UINT64_MAX) const;
  // Of a piece: it has ended. `control`: as the device has left it when that launch has ended. kLaunchFailed: nothing
  // that the kernel can have left, so the program has written where it must not.
  [[nodiscard]] GpuResult<void> Note(const Launch& launch, std::span<const uint32_t> control);

 private:
  Launch NextPiece(uint64_t most) const;

  uint32_t grid_[3];
  uint64_t total_;
  uint64_t begun_ = 0;
  std::vector<uint32_t> left_;  // slots of blocks that have been left in the middle
  bool pieces_;
  uint32_t slots_;
  uint64_t slot_bytes_;
  uint32_t dynamic_shared_;
};

// Runs `grid` to its end. `run` writes launch.control to the device, launches, waits, and puts into launch.control what
// stands there then; it is called once for each turn and decides when it begins and when the stop word changes.
// `most`: of the next piece.
[[nodiscard]] GpuResult<void> RunInTurns(
    GridTurns& grid, const std::function<GpuResult<void>(GridTurns::Launch&)>& run,
    const std::function<uint64_t()>& most = [] { return UINT64_MAX; });

}  // namespace vgpud::rewrite
