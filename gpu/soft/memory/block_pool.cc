// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/block_pool.h"

#include <cstring>
#include <utility>

namespace vgpud::soft {

BlockPool::Region BlockPool::Take(size_t bytes) {
  const size_t cost = Cost(bytes);
  MutexLock lock(mutex_);
  if (const auto it = kept_.find(cost); it != kept_.end() && !it->second.empty()) {
    GuardedMemory region = std::move(it->second.back());
    it->second.pop_back();
    kept_bytes_ -= cost;
    used_bytes_ += cost;
    std::memset(region.data(), 0, cost);
    return {*this, std::move(region)};
  }
  if (!memory_.Take(cost)) {
    DropLocked();
    if (!memory_.Take(cost)) return {};
  }
  auto made = regions_ < kMostRegions ? GuardedMemory::Make(bytes)
                                      : Fail(std::errc::not_enough_memory, "too many regions of blocks");
  if (!made) {
    memory_.Give(cost);
    return {};
  }
  ++regions_;
  used_bytes_ += cost;
  return {*this, std::move(*made)};
}

void BlockPool::Return(GuardedMemory region) {
  const size_t cost = region.bytes();
  MutexLock lock(mutex_);
  used_bytes_ -= cost;
  if (cost <= kLargestKept && kept_bytes_ + cost <= kMostKept) {
    kept_[cost].push_back(std::move(region));
    kept_bytes_ += cost;
    return;
  }
  --regions_;
  region = GuardedMemory();
  memory_.Give(cost);
}

void BlockPool::Drop() {
  MutexLock lock(mutex_);
  DropLocked();
}

void BlockPool::DropLocked() {
  for (const auto& [cost, regions] : kept_) {
    regions_ -= regions.size();
    memory_.Give(cost * regions.size());
  }
  kept_.clear();
  kept_bytes_ = 0;
}

size_t BlockPool::in_use() const {
  MutexLock lock(mutex_);
  return used_bytes_;
}

}  // namespace vgpud::soft
