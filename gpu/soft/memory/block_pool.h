// SPDX-License-Identifier: Apache-2.0
// Memory for the state of blocks (CTAs): each region between inaccessible pages, counted as host memory. Small regions
// are kept for the next block that needs as much. Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/guarded_memory.h"
#include "base/host_memory.h"
#include "gpu/soft/memory/lock_ranks.h"

namespace vgpud::soft {

class BlockPool {
 public:
  // A region goes back when it is destroyed, before the pool.
  class Region {
   public:
    Region() = default;
    Region(BlockPool& pool, GuardedMemory memory) : pool_(&pool), memory_(std::move(memory)) {}
    Region(Region&&) = default;
    Region& operator=(Region&&) = default;
    ~Region() {
      if (memory_) pool_->Return(std::move(memory_));
    }
    explicit operator bool() const { return static_cast<bool>(memory_); }
    // Zeroed; the last of `bytes` bytes is the last one that is accessible.
    std::byte* EndingHere(size_t bytes) const { return memory_.EndingHere(bytes); }

   private:
    BlockPool* pool_ = nullptr;
    GuardedMemory memory_;
  };

  explicit BlockPool(HostMemory& memory) : memory_(memory) {}
  ~BlockPool() { Drop(); }
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Host memory that a region for `bytes` takes.
  static constexpr size_t Cost(size_t bytes) { return GuardedMemory::Rounded(bytes); }
  // Zeroed. False: there is no host memory for it now, or there are too many.
  Region Take(size_t bytes);
  // Lets go of what is kept.
  void Drop();
  // Bytes of regions that are in use.
  size_t in_use() const;

 private:
  friend class Region;
  // A region takes up to 4 of the 65530 mappings that Linux allows a process (vm.max_map_count).
  static constexpr size_t kMostRegions = 12'000;
  static constexpr size_t kLargestKept = 2 << 20;
  static constexpr size_t kMostKept = 32 << 20;
  void Return(GuardedMemory region);
  void DropLocked() REQUIRES(mutex_);

  HostMemory& memory_;
  mutable Mutex mutex_{lock_rank::kBlocks};
  std::map<size_t, std::vector<GuardedMemory>> kept_ GUARDED_BY(mutex_);  // by size
  size_t kept_bytes_ GUARDED_BY(mutex_) = 0;
  size_t used_bytes_ GUARDED_BY(mutex_) = 0;
  size_t regions_ GUARDED_BY(mutex_) = 0;
};

}  // namespace vgpud::soft
