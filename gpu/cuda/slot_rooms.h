// SPDX-License-Identifier: Apache-2.0
// Device memory for what kernels save when they leave in the middle of a block (docs/preemption-rewrite.md,
// "Safepoints"): how much a launch needs, and the rooms of that size which a context has.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/module/cuda_module.h"

namespace vgpud::driver {

// What a launch needs so that each of its blocks that runs can leave. slots 0: none can.
struct SlotNeed {
  uint32_t slots = 0;
  uint64_t bytes = 0;
};
// Twice the blocks that the card runs at once (rewrite::GridTurns), or all of the grid if that is less. Asks the
// driver, with the card bound; any thread.
SlotNeed SlotNeedOf(const Card& card, const Kernel& kernel, const LaunchShape& shape);

struct SlotRoom {
  DevicePtr address = 0;
  uint64_t bytes = 0;
  size_t control_words = 0;  // so many words at its begin are as a first turn wants them but for the counters
};

// Any thread.
class SlotRooms {
 public:
  explicit SlotRooms(const Card& card) : card_(card) {}
  ~SlotRooms();
  SlotRooms(const SlotRooms&) = delete;
  SlotRooms& operator=(const SlotRooms&) = delete;

  // What a room for so many bytes takes: there are few sizes, so that kernels which need more and more leave few rooms
  // behind.
  static uint64_t Rounded(uint64_t bytes);

  // Do the rooms that are there suffice for launches that need so many bytes each, all at once? 0 needs none.
  bool Suffice(std::span<const uint64_t> each) const;
  // One more of Rounded(bytes).
  GpuResult<void> Make(uint64_t bytes);
  // Frees those that nobody has. Returns what they took.
  uint64_t DropFree();

  // The smallest that is free and has so many bytes.
  std::optional<SlotRoom> Take(uint64_t bytes);
  void GiveBack(SlotRoom room);
  // Something on the GPU may still write there: it goes with the context.
  void Abandon(SlotRoom room);

 private:
  void Forget(uint64_t bytes);

  const Card& card_;
  mutable std::mutex mu_;
  std::vector<SlotRoom> free_;
  std::vector<uint64_t> sizes_;  // of those that are free or taken
};

}  // namespace vgpud::driver
