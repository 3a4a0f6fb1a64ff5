// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/mappable_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace vgpud::soft {
namespace {

// Is there anything of [at, at + bytes) in a map of ranges? `size_of` tells the bytes of an entry.
template <class Map, class Size>
bool Overlaps(const Map& map, uint64_t at, uint64_t bytes, Size size_of) {
  const auto behind = map.lower_bound(at);
  if (behind != map.end() && behind->first - at < bytes) return true;
  return behind != map.begin() && at - std::prev(behind)->first < size_of(std::prev(behind)->second);
}

using Pieces = MappableMemory::Pieces;

uint64_t Bytes(const Pieces& pieces) {
  uint64_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

// [offset, offset + bytes), which is inside.
Pieces Part(const Pieces& pieces, uint64_t offset, uint64_t bytes) {
  Pieces part;
  for (const auto& piece : pieces) {
    if (bytes == 0) break;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    part.push_back(piece.subspan(offset, std::min<uint64_t>(bytes, piece.size() - offset)));
    bytes -= part.back().size();
    offset = 0;
  }
  return part;
}

bool Protect(const Pieces& pieces, int protection) {
  return std::all_of(pieces.begin(), pieces.end(),
                     [&](const auto& piece) { return ::mprotect(piece.data(), piece.size(), protection) == 0; });
}

void MovePages(const Pieces& to, const Pieces& from) {
  auto target = to.begin();
  uint64_t filled = 0;
  for (const auto& piece : from) {
    for (uint64_t page = 0; page < piece.size(); page += MappableMemory::kGrain) {
      std::memcpy(target->data() + filled, piece.data() + page, MappableMemory::kGrain);
      ::madvise(piece.data() + page, MappableMemory::kGrain, MADV_DONTNEED);
      filled += MappableMemory::kGrain;
      if (filled == target->size()) filled = 0, ++target;
    }
  }
}

// Moves all bytes, page by page, so that they never take more than one page twice. At any time only one of both sides
// is writable: what is writable counts against the limit of this process. False: nothing has changed.
bool Move(const Pieces& to, const Pieces& from, bool contents) {
  if (!Protect(from, PROT_READ) || !Protect(to, PROT_READ | PROT_WRITE)) {
    Protect(to, PROT_NONE);
    Protect(from, PROT_READ | PROT_WRITE);
    return false;
  }
  if (contents) MovePages(to, from);
  Protect(from, PROT_NONE);
  return true;
}

}  // namespace

MappableMemory::MappableMemory(std::byte* begin, uint64_t bytes, uint8_t* pages) : pages_(pages) {
  if (begin == nullptr) return;
  if (auto space = Mapping::ReserveAt(reinterpret_cast<uint64_t>(begin), bytes)) space_ = std::move(*space);
}

uint64_t MappableMemory::Create(Pieces storage) {
  blocks_[next_block_].storage = std::move(storage);
  return next_block_++;
}

GpuResult<MappableMemory::Pieces> MappableMemory::Release(uint64_t block) {
  const auto it = blocks_.find(block);
  if (it == blocks_.end()) return GpuFail(CuStatus::kInvalidHandle, fmt::format("no memory {} to be mapped", block));
  if (!it->second.mapped.empty())
    return GpuFail(CuStatus::kInvalidValue, fmt::format("memory {} is mapped, unmap it first", block));
  Pieces storage = std::move(it->second.storage);
  blocks_.erase(it);
  return storage;
}

GpuResult<void> MappableMemory::Map(uint64_t block, uint64_t offset, uint64_t at, uint64_t bytes) {
  const auto it = blocks_.find(block);
  if (it == blocks_.end()) return GpuFail(CuStatus::kInvalidHandle, fmt::format("no memory {} to be mapped", block));
  Block& memory = it->second;
  const bool whole = bytes != 0 && (offset | at | bytes) % kGrain == 0;
  bool taken;
  {
    MutexLock lock(mutex_);
    taken = Overlaps(mapped_, at, bytes, [](const Mapped& m) { return m.bytes; });
  }
  if (!whole || !Inside(offset, bytes, Bytes(memory.storage)) || !Inside(at, bytes, space_.size()) || taken)
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("{} bytes at {} of memory {} ({} bytes) can't be mapped to {:#x}", bytes, offset, block,
                               Bytes(memory.storage), at));
  if (Overlaps(memory.mapped, offset, bytes, [](uint64_t size) { return size; }))
    return GpuFail(CuStatus::kNotSupported, fmt::format("memory {} can't be at two addresses at a time", block));
  if (!Move({{Host(at), bytes}}, Part(memory.storage, offset, bytes), memory.used))
    return GpuFail(CuStatus::kOutOfMemory, fmt::format("the host can't map {} bytes", bytes));
  memory.used = true;
  memory.mapped[offset] = bytes;
  {
    MutexLock lock(mutex_);
    mapped_[at] = {bytes, block, offset};
  }
  std::memset(pages_ + at / kGrain, 1, bytes / kGrain);
  return {};
}

GpuResult<void> MappableMemory::Unmap(uint64_t at, uint64_t bytes) {
  const auto wrong = [&] {
    return GpuFail(CuStatus::kInvalidValue, fmt::format("no {} bytes mapped to {:#x}", bytes, at));
  };
  {
    MutexLock lock(mutex_);
    if (bytes == 0 || !Covers(at, bytes) || mapped_.count(at) == 0) return wrong();
    const auto last = std::prev(mapped_.upper_bound(at + (bytes - 1)));
    if (last->first + last->second.bytes != at + bytes) return wrong();
  }
  const auto piece_at = [this](uint64_t place) {
    MutexLock lock(mutex_);
    return mapped_.at(place);
  };
  while (bytes != 0) {
    const Mapped piece = piece_at(at);
    Block& memory = blocks_.at(piece.block);
    if (!Move(Part(memory.storage, piece.offset, piece.bytes), {{Host(at), piece.bytes}}, true))
      return GpuFail(CuStatus::kOutOfMemory, fmt::format("the host can't unmap {} bytes", piece.bytes));
    std::memset(pages_ + at / kGrain, 0, piece.bytes / kGrain);
    memory.mapped.erase(piece.offset);
    {
      MutexLock lock(mutex_);
      mapped_.erase(at);
    }
    at += piece.bytes;
    bytes -= piece.bytes;
  }
  return {};
}

bool MappableMemory::Contains(uint64_t at, uint64_t bytes) const {
  MutexLock lock(mutex_);
  return Covers(at, bytes);
}

bool MappableMemory::Covers(uint64_t at, uint64_t bytes) const {
  auto it = mapped_.upper_bound(at);
  if (it == mapped_.begin()) return false;
  --it;
  uint64_t offset = at - it->first;
  for (;;) {
    if (offset >= it->second.bytes) return false;
    const uint64_t rest = it->second.bytes - offset;
    if (bytes <= rest) return true;
    bytes -= rest;
    const uint64_t end = it->first + it->second.bytes;
    if (++it == mapped_.end() || it->first != end) return false;
    offset = 0;
  }
}

std::optional<MappableMemory::Piece> MappableMemory::LastUpTo(uint64_t at) const {
  MutexLock lock(mutex_);
  const auto after = mapped_.upper_bound(at);
  if (after == mapped_.begin()) return std::nullopt;
  return Piece{std::prev(after)->first, std::prev(after)->second.bytes};
}

}  // namespace vgpud::soft
