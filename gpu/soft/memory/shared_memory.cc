// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/shared_memory.h"

#include <iterator>

#include "base/checked.h"

namespace vgpud::soft {

std::optional<uint64_t> SharedMemory::OffsetOf(std::span<const std::byte> memory) const {
  const auto space = reach_.shared();
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const auto first = reinterpret_cast<uintptr_t>(space.data());
  if (memory.empty() || space.empty() || begin < first || !Inside(begin - first, memory.size(), space.size()))
    return std::nullopt;
  return begin - (reinterpret_cast<uintptr_t>(reach_.device_memory) - ReachSpace::kBytes);
}

std::optional<uint64_t> SharedMemory::Add(std::span<const std::byte> memory) {
  const auto offset = OffsetOf(memory);
  if (!offset || *offset % ReachSpace::kAlignment != 0) return std::nullopt;
  MutexLock lock(mutex_);
  const auto behind = pieces_.lower_bound(*offset);
  if (behind != pieces_.end() && behind->first == *offset && behind->second == memory.size()) return offset;
  // Whole pages, so that none is of two.
  const uint64_t end = (*offset + memory.size() + ReachSpace::kAlignment - 1) & ~(ReachSpace::kAlignment - 1);
  if (behind != pieces_.end() && behind->first < end) return std::nullopt;
  if (behind != pieces_.begin() && std::prev(behind)->first + std::prev(behind)->second > *offset) return std::nullopt;
  pieces_[*offset] = memory.size();
  return offset;
}

std::optional<uint64_t> SharedMemory::Remove(std::span<const std::byte> memory) {
  const auto offset = OffsetOf(memory);
  if (!offset) return std::nullopt;
  MutexLock lock(mutex_);
  const auto piece = pieces_.find(*offset);
  if (piece == pieces_.end() || piece->second != memory.size()) return std::nullopt;
  pieces_.erase(piece);
  return offset;
}

bool SharedMemory::any() const {
  MutexLock lock(mutex_);
  return !pieces_.empty();
}

bool SharedMemory::Contains(uint64_t offset, uint64_t bytes) const {
  const auto piece = LastUpTo(offset);
  return piece && Inside(offset - piece->offset, bytes, piece->bytes);
}

std::optional<SharedMemory::Piece> SharedMemory::LastUpTo(uint64_t offset) const {
  MutexLock lock(mutex_);
  const auto after = pieces_.upper_bound(offset);
  if (after == pieces_.begin()) return std::nullopt;
  return Piece{std::prev(after)->first, std::prev(after)->second};
}

}  // namespace vgpud::soft
