// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/slot_rooms.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "gpu/rewrite/turns.h"

namespace vgpud::driver {
namespace {

constexpr uint64_t kLeastRoom = uint64_t{2} << 20, kMostRoom = uint64_t{1} << 46;
// Of a block (CUDA C++ Programming Guide, technical specifications).
constexpr uint64_t kMostThreads = 1024;

}  // namespace

SlotNeed SlotNeedOf(const Card& card, const Kernel& kernel, const LaunchShape& shape) {
  if (kernel.in_turns == nullptr || kernel.in_turns->plan.rung != rewrite::Rung::kSafepoints) return {};
  const uint64_t threads =
      (CheckedSize(uint64_t{shape.block[0]}) * uint64_t{shape.block[1]} * uint64_t{shape.block[2]}).saturated();
  const uint64_t blocks =
      (CheckedSize(uint64_t{shape.grid[0]}) * uint64_t{shape.grid[1]} * uint64_t{shape.grid[2]}).saturated();
  if (threads == 0 || threads > kMostThreads || shape.cooperative || shape.cluster[0] != 0) return {};
  int at_once = 0;
  if (card.api().OccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel.in_turns->handle, static_cast<int>(threads),
                                                           shape.dynamic_shared) != kOk)
    return {};
  const uint64_t resident = uint64_t{static_cast<uint32_t>(std::max(at_once, 0))} * card.multiprocessors();
  SlotNeed need{MustFit<uint32_t>(std::min({blocks, 2 * resident, uint64_t{INT32_MAX}})), 0};
  const rewrite::GridTurns turns(kernel.in_turns->plan, shape.grid, MustFit<uint32_t>(threads), shape.dynamic_shared,
                                 need.slots);
  if (need.slots != 0) need.bytes = turns.control_bytes() + turns.slot_area_bytes();
  return need.bytes <= kMostRoom ? need : SlotNeed{};
}

SlotRooms::~SlotRooms() { (void)DropFree(); }

uint64_t SlotRooms::Rounded(uint64_t bytes) { return std::bit_ceil(std::clamp(bytes, kLeastRoom, kMostRoom)); }

bool SlotRooms::Suffice(std::span<const uint64_t> each) const {
  const std::lock_guard lock(mu_);
  std::vector<uint64_t> needs(each.begin(), each.end()), rooms = sizes_;
  std::erase(needs, 0u);
  if (needs.size() > rooms.size()) return false;
  std::sort(needs.begin(), needs.end(), std::greater<>());
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  return std::equal(needs.begin(), needs.end(), rooms.begin(), std::less_equal<>());
}

GpuResult<void> SlotRooms::Make(uint64_t bytes) {
  SlotRoom room{0, Rounded(bytes), 0};
  card_.Bind();
  if (const Status status = card_.api().MemAlloc(&room.address, room.bytes); status != kOk)
    return GpuFail(static_cast<CuStatus>(status),
                   fmt::format("{} bytes for what kernels save: {}", room.bytes, card_.api().Describe(status)));
  const std::lock_guard lock(mu_);
  sizes_.push_back(room.bytes);
  free_.push_back(room);
  return {};
}

uint64_t SlotRooms::DropFree() {
  const std::lock_guard lock(mu_);
  card_.Bind();
  uint64_t bytes = 0;
  for (const SlotRoom& room : free_) {
    (void)card_.api().MemFree(room.address);
    Forget(room.bytes);
    bytes += room.bytes;
  }
  free_.clear();
  return bytes;
}

void SlotRooms::Forget(uint64_t bytes) { sizes_.erase(std::find(sizes_.begin(), sizes_.end(), bytes)); }

std::optional<SlotRoom> SlotRooms::Take(uint64_t bytes) {
  const std::lock_guard lock(mu_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->bytes >= bytes && (best == free_.end() || it->bytes < best->bytes)) best = it;
  if (best == free_.end()) return std::nullopt;
  const SlotRoom room = *best;
  free_.erase(best);
  return room;
}

void SlotRooms::GiveBack(SlotRoom room) {
  const std::lock_guard lock(mu_);
  free_.push_back(room);
}

void SlotRooms::Abandon(SlotRoom room) {
  const std::lock_guard lock(mu_);
  Forget(room.bytes);
}

}  // namespace vgpud::driver
