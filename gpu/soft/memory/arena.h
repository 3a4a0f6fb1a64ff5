// SPDX-License-Identifier: Apache-2.0
// Device memory: one reserved range, an allocator over the part of it that is open, which grows when allocations need
// it, and the 2 MiB page map that kernel accesses are checked by. In front of it lies memory that the host shares, as
// far as there is any (base/reach_space.h). One thread at a time, but for Contains, Share and Unshare, which any thread
// may call at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/guarded_memory.h"
#include "base/mapping.h"
#include "base/reach_space.h"
#include "gpu/gpu.h"
#include "gpu/soft/memory/lock_ranks.h"
#include "gpu/soft/memory/mappable_memory.h"
#include "gpu/soft/memory/shared_memory.h"

namespace vgpud::soft {

class StateReader;
class StateWriter;

class Arena {
 public:
  // Reserves address space (rounded up to 2 MiB) between inaccessible pages; memory is taken from the host page by page
  // when touched.
  explicit Arena(const VramSize& size, const ReachSpace& reach = {});
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // VramPart::UseVramPart: moves all of it, while nothing has been allocated.
  bool UsePart(uint32_t part);
  // It opens no more than `bytes` from now on; what is open stays so. Any thread.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  static constexpr uint64_t kGranule = 512;
  // What Alloc(bytes) takes.
  static uint64_t Rounded(uint64_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

  // First fit, 512-byte aligned. `pinned`: not to be given back by Free (module globals).
  GpuResult<GpuVa> Alloc(uint64_t bytes, bool pinned);
  // Bytes given back; nullopt if `address` is not the start of an allocation of that kind.
  std::optional<uint64_t> Free(GpuVa address, bool pinned);
  // Gpu::Share and Gpu::Unshare; nullopt: it lies elsewhere, or not as it has to.
  std::optional<GpuVa> Share(std::span<std::byte> memory);
  bool shares() const { return shared_->any(); }
  bool can_share() const { return shared_->possible(); }
  void Unshare(std::span<std::byte> memory);
  // The calls of Gpu; `mappable` is for those that only ask.
  GpuResult<uint64_t> CreateMappable(uint64_t bytes);
  GpuResult<uint64_t> ReleaseMappable(uint64_t block);
  GpuResult<void> MapMemory(uint64_t block, uint64_t offset, GpuVa to, uint64_t bytes);
  GpuResult<void> UnmapMemory(GpuVa at, uint64_t bytes);
  const MappableMemory& mappable() const { return *mappable_; }
  // Inside one live allocation, one piece of shared memory, or mapped memory without a hole?
  bool Contains(GpuVa address, uint64_t bytes) const;
  bool empty() const {
    MutexLock lock(mutex_);
    return used_.empty();
  }
  struct Allocation {
    GpuVa address;
    uint64_t bytes;  // as asked for
  };
  // The live allocation with the highest start that is not above `address`.
  std::optional<Allocation> LastUpTo(GpuVa address) const;

  std::byte* Host(GpuVa address) { return reach_begin() + (Raw(address) - first_va()); }
  std::byte* memory() const { return memory_.data(); }
  // That are open.
  uint64_t bytes() const { return memory_.bytes(); }
  // The address of its first byte.
  uint64_t vram_va() const;
  // As kernels reach it: all addresses from first_va() on, where only what pages() says is there.
  static uint64_t first_va();
  std::byte* reach_begin() const { return memory() - shift_ - ReachSpace::kBytes; }
  uint64_t reach_bytes() const;
  const uint8_t* pages() const { return page_mapped_.At<uint8_t>(0); }

  // --- arena_state.cc ---
  // Which ranges are taken; what is in them.
  void SaveBlocks(StateWriter& out) const;
  void SaveContents(StateWriter& out) const;
  // Into a fresh arena.
  void LoadBlocks(StateReader& in);
  void LoadContents(StateReader& in);
  // Address and size, as asked for, of the pinned allocations.
  std::map<uint64_t, uint64_t> Pinned() const;

 private:
  struct Block {
    uint64_t bytes;  // rounded
    uint64_t asked;
    bool pinned;
  };
  void MapPages(uint64_t offset, uint64_t bytes, int delta);
  // Returns the start of the first free range that is large enough.
  std::optional<uint64_t> TakeFree(uint64_t bytes);
  // Takes whole pages from as many free ranges as it needs, or nothing.
  std::optional<MappableMemory::Pieces> TakePages(uint64_t bytes);
  void TakeOf(std::map<uint64_t, uint64_t>::iterator range, uint64_t offset, uint64_t bytes);
  void PutFree(uint64_t offset, uint64_t bytes);
  bool Place(uint64_t shift, const VramSize& size);
  // Opens what the limit allows. False: nothing more.
  bool Grow();
  uint8_t* page_map() const { return page_mapped_.At<uint8_t>(0); }
  uint8_t* vram_pages() const;

  const ReachSpace reach_;
  GuardedMemory memory_;
  std::atomic<uint64_t> limit_;  // of what is open
  uint64_t shift_ = 0;           // from the first address that device memory may have
  mutable Mutex mutex_{lock_rank::kArena};
  std::map<uint64_t, Block> used_ GUARDED_BY(mutex_);  // by offset
  std::map<uint64_t, uint64_t> free_;
  std::vector<uint32_t> page_users_;
  Mapping page_mapped_;  // one byte per page of reach_bytes()
  std::optional<SharedMemory> shared_;
  std::optional<MappableMemory> mappable_;
};

}  // namespace vgpud::soft
