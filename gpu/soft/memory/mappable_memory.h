// SPDX-License-Identifier: Apache-2.0
// Memory that is made first and gets its addresses later (cuMemCreate, cuMemMap). Its bytes live in a part of the arena
// that nobody reaches while it has no address, and move to the address and back with it: kernels reach everything by
// one addition, so it can be at one place at a time only. One thread at a time, but for Contains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/mapping.h"
#include "gpu/capability/late_mapping.h"
#include "gpu/soft/memory/lock_ranks.h"

namespace vgpud::soft {

class MappableMemory {
 public:
  static constexpr uint64_t kGrain = LateMapping::kMappingGrain;

  // Addresses from `begin` on in the host, which are reserved here; nullptr: none. `pages`: for each kGrain of them,
  // set while something is there.
  MappableMemory(std::byte* begin, uint64_t bytes, uint8_t* pages);
  MappableMemory(const MappableMemory&) = delete;
  MappableMemory& operator=(const MappableMemory&) = delete;

  // Each piece has whole pages. They stand in the order of their offsets in the block.
  using Pieces = std::vector<std::span<std::byte>>;

  bool possible() const { return static_cast<bool>(space_); }
  bool any() const { return !blocks_.empty(); }
  // `storage`: zeros that it has until Release gives them back.
  uint64_t Create(Pieces storage);
  // kInvalidHandle; kInvalidValue: a part of it has an address.
  GpuResult<Pieces> Release(uint64_t block);
  // `at`: an offset in the addresses. All sizes and places are multiples of kGrain. kInvalidHandle; kInvalidValue: not
  // inside, or something is there; kNotSupported: a part of it has an address already; kOutOfMemory: of the host's.
  GpuResult<void> Map(uint64_t block, uint64_t offset, uint64_t at, uint64_t bytes);
  // What whole calls of Map have put there. kInvalidValue: not so.
  GpuResult<void> Unmap(uint64_t at, uint64_t bytes);
  // Does everything have memory? Any thread.
  bool Contains(uint64_t at, uint64_t bytes) const;
  struct Piece {
    uint64_t at;
    uint64_t bytes;
  };
  // The one with the highest place that is not above `at`.
  std::optional<Piece> LastUpTo(uint64_t at) const;

 private:
  struct Block {
    Pieces storage;
    std::map<uint64_t, uint64_t> mapped;  // bytes by offset
    bool used = false;                    // had an address once, so it may have contents
  };
  struct Mapped {
    uint64_t bytes;
    uint64_t block;
    uint64_t offset;
  };
  bool Covers(uint64_t at, uint64_t bytes) const REQUIRES(mutex_);
  std::byte* Host(uint64_t at) const { return space_.data() + at; }

  Mapping space_;
  uint8_t* const pages_;
  mutable Mutex mutex_{lock_rank::kMapped};
  std::map<uint64_t, Mapped> mapped_ GUARDED_BY(mutex_);  // by place
  std::map<uint64_t, Block> blocks_;
  uint64_t next_block_ = 1;
};

}  // namespace vgpud::soft
