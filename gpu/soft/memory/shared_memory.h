// SPDX-License-Identifier: Apache-2.0
// Which memory of the host kernels reach, by its offset from the first address that they can (base/reach_space.h).
// Thread-safe: copies look while a buffer goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/reach_space.h"
#include "gpu/soft/memory/lock_ranks.h"

namespace vgpud::soft {

class SharedMemory {
 public:
  explicit SharedMemory(const ReachSpace& reach) : reach_(reach) {}

  bool possible() const { return !reach_.shared().empty(); }
  // Where `memory` is; nullopt: it is not in reach, not aligned, empty, or a part of it is there already.
  std::optional<uint64_t> Add(std::span<const std::byte> memory);
  // Where it was; nullopt: it was not added.
  std::optional<uint64_t> Remove(std::span<const std::byte> memory);
  // Inside one piece?
  bool Contains(uint64_t offset, uint64_t bytes) const;
  bool any() const;
  struct Piece {
    uint64_t offset;
    uint64_t bytes;
  };
  // The one with the highest start that is not above `offset`.
  std::optional<Piece> LastUpTo(uint64_t offset) const;

 private:
  std::optional<uint64_t> OffsetOf(std::span<const std::byte> memory) const;

  const ReachSpace reach_;
  mutable Mutex mutex_{lock_rank::kShared};
  std::map<uint64_t, uint64_t> pieces_ GUARDED_BY(mutex_);  // bytes by offset
};

}  // namespace vgpud::soft
