// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "gpu/soft/code/inst.h"

namespace vgpud::soft {
namespace {
constexpr uint64_t kPage = uint64_t{1} << kPageShift;
constexpr uint64_t kPartBytes = (kMappedVa - kVramVa) / VGPU_BUFFER_PARTS;
}  // namespace

uint64_t Arena::first_va() { return kArenaVa; }
uint64_t Arena::reach_bytes() const { return kMappedVa + kMappedBytes - kArenaVa; }
uint64_t Arena::vram_va() const { return kVramVa + shift_; }
uint8_t* Arena::vram_pages() const { return page_map() + (ReachSpace::kBytes + shift_) / kPage; }

Arena::Arena(const VramSize& size, const ReachSpace& reach)
    : reach_(reach), limit_(CheckedSize(std::max<uint64_t>(size.bytes, 1)).AlignedUp(kPage).saturated()) {
  // Mostly of shared memory that is not there: only what is used takes memory.
  CHECK(limit_ <= kMappedVa - kVramVa);
  auto pages = Mapping::Anonymous(reach_bytes() / kPage);
  CHECK(pages);
  page_mapped_ = std::move(*pages);
  CHECK(Place(0, {limit_, size.most}));
  shared_.emplace(reach);
  free_[0] = bytes();
  page_users_.resize(bytes() / kPage);
}

// Memory at that distance from the first address that device memory may have. False: nothing has changed.
bool Arena::Place(uint64_t shift, const VramSize& size) {
  std::byte* const first = reach_.device_memory;
  const uint64_t most = std::max(size.bytes, std::min(size.most, kMappedVa - kVramVa - shift) / kPage * kPage);
  const auto make = [&](uint64_t room) {
    return first == nullptr ? GuardedMemory::Make(size.bytes, room)
                            : GuardedMemory::MakeAt(first + shift, size.bytes, room);
  };
  auto memory = make(most);
  if (!memory && most != size.bytes) memory = make(size.bytes);
  if (!memory) return false;
  memory_ = std::move(*memory);
  shift_ = shift;
  mappable_.emplace(first == nullptr ? nullptr : first + (kMappedVa - kVramVa), kMappedBytes,
                    page_map() + (kMappedVa - kArenaVa) / kPage);
  return true;
}

bool Arena::UsePart(uint32_t part) {
  const uint64_t shift = part * kPartBytes;
  if (shift == shift_) return true;
  // The guard behind it stays within its part, too.
  constexpr uint64_t kMost = kPartBytes - ReachSpace::kGuard;
  const bool fits = part < VGPU_BUFFER_PARTS && bytes() <= kMost;
  if (!fits || free_.size() != 1 || free_.begin()->second != bytes()) return false;
  const VramSize here{bytes(), memory_.most()};
  memory_ = {};  // what it may grow to reaches into other parts
  if (Place(shift, {here.bytes, std::min<uint64_t>(here.most, kMost)})) return true;
  CHECK(Place(shift_, here));
  return false;
}

bool Arena::Grow() {
  const uint64_t limit = CheckedSize(limit_.load(std::memory_order_relaxed)).AlignedUp(kPage).saturated();
  const uint64_t before = bytes(), after = std::min<uint64_t>(limit, memory_.most());
  if (after <= before || !memory_.Grow(after)) return false;
  page_users_.resize(after / kPage);
  PutFree(before, after - before);
  return true;
}

void Arena::MapPages(uint64_t offset, uint64_t bytes, int delta) {
  for (uint64_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) {
    page_users_[page] += static_cast<uint32_t>(delta);
    vram_pages()[page] = page_users_[page] != 0;
    // A page without users goes back to the host and reads as zero when it is used again.
    if (page_users_[page] == 0) madvise(memory() + page * kPage, kPage, MADV_DONTNEED);
  }
}

std::optional<uint64_t> Arena::TakeFree(uint64_t bytes) {
  const auto large = [&](const auto& range) { return range.second >= bytes; };
  auto it = std::find_if(free_.begin(), free_.end(), large);
  if (it == free_.end() && Grow()) it = std::find_if(free_.begin(), free_.end(), large);
  if (it == free_.end()) return std::nullopt;
  const uint64_t offset = it->first;
  TakeOf(it, offset, bytes);
  return offset;
}

// A card needs no contiguous memory for a block that is mapped later.
std::optional<MappableMemory::Pieces> Arena::TakePages(uint64_t bytes) {
  const auto pages_of = [](const auto& range) {
    const uint64_t begin = CheckedSize(range.first).AlignedUp(kPage).saturated();
    const uint64_t end = (range.first + range.second) / kPage * kPage;
    return std::pair(begin, end > begin ? end - begin : 0);
  };
  const auto there = [&] {
    uint64_t sum = 0;
    for (const auto& range : free_) sum += pages_of(range).second;
    return sum;
  };
  if (there() < bytes && !(Grow() && there() >= bytes)) return std::nullopt;
  MappableMemory::Pieces pieces;
  for (auto it = free_.begin(); bytes != 0;) {
    const auto [begin, whole] = pages_of(*it);
    const auto next = std::next(it);
    if (const uint64_t taken = std::min(whole, bytes); taken != 0) {
      TakeOf(it, begin, taken);
      pieces.emplace_back(memory() + begin, taken);
      bytes -= taken;
    }
    it = next;
  }
  return pieces;
}

void Arena::TakeOf(std::map<uint64_t, uint64_t>::iterator range, uint64_t offset, uint64_t bytes) {
  const auto [begin, size] = *range;
  free_.erase(range);
  const uint64_t skipped = offset - begin;
  if (skipped != 0) free_[begin] = skipped;
  if (const uint64_t rest = size - skipped - bytes; rest != 0) free_[offset + bytes] = rest;
}

void Arena::PutFree(uint64_t offset, uint64_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto prev = std::prev(next);
    if (prev->first + prev->second == offset) {
      offset = prev->first;
      bytes += prev->second;
    }
  }
  free_[offset] = bytes;
}

GpuResult<GpuVa> Arena::Alloc(uint64_t bytes, bool pinned) {
  if (bytes == 0) return GpuFail(CuStatus::kInvalidValue, "allocation of 0 bytes");
  if (bytes > memory_.most())
    return GpuFail(CuStatus::kOutOfMemory, fmt::format("{} bytes asked, the device has {}", bytes, memory_.bytes()));
  const uint64_t need = Rounded(bytes);
  const auto offset = TakeFree(need);
  if (!offset) return GpuFail(CuStatus::kOutOfMemory, fmt::format("no free range of {} bytes in device memory", need));
  {
    MutexLock lock(mutex_);
    used_[*offset] = {need, bytes, pinned};
  }
  MapPages(*offset, need, 1);
  return GpuVa{vram_va() + *offset};
}

std::optional<uint64_t> Arena::Free(GpuVa address, bool pinned) {
  const uint64_t offset = Raw(address) - vram_va();
  uint64_t bytes = 0;
  {
    MutexLock lock(mutex_);
    const auto it = used_.find(offset);
    if (it == used_.end() || it->second.pinned != pinned) return std::nullopt;
    bytes = it->second.bytes;
    used_.erase(it);
  }
  MapPages(offset, bytes, -1);
  PutFree(offset, bytes);
  return bytes;
}

GpuResult<uint64_t> Arena::CreateMappable(uint64_t bytes) {
  if (!mappable_->possible()) return GpuFail(CuStatus::kNotSupported, "this GPU can't map memory to addresses later");
  if (bytes == 0 || bytes % kPage != 0)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("{} bytes are no multiple of {}", bytes, kPage));
  auto pieces = TakePages(bytes);
  if (!pieces) return GpuFail(CuStatus::kOutOfMemory, fmt::format("no {} bytes of free pages in device memory", bytes));
  return mappable_->Create(std::move(*pieces));
}

GpuResult<uint64_t> Arena::ReleaseMappable(uint64_t block) {
  const auto storage = mappable_->Release(block);
  if (!storage) return tl::unexpected(storage.error());
  uint64_t bytes = 0;
  for (const auto& piece : *storage) {
    madvise(piece.data(), piece.size(), MADV_DONTNEED);
    PutFree(static_cast<uint64_t>(piece.data() - memory()), piece.size());
    bytes += piece.size();
  }
  return bytes;
}

GpuResult<void> Arena::MapMemory(uint64_t block, uint64_t offset, GpuVa to, uint64_t bytes) {
  return mappable_->Map(block, offset, Raw(to) - kMappedVa, bytes);
}

GpuResult<void> Arena::UnmapMemory(GpuVa at, uint64_t bytes) { return mappable_->Unmap(Raw(at) - kMappedVa, bytes); }

std::optional<GpuVa> Arena::Share(std::span<std::byte> memory) {
  const auto at = shared_->Add(memory);
  if (!at) return std::nullopt;
  std::memset(page_map() + *at / kPage, 1, (memory.size() + kPage - 1) / kPage);
  return GpuVa{kArenaVa + *at};
}

void Arena::Unshare(std::span<std::byte> memory) {
  const auto at = shared_->Remove(memory);
  if (at) std::memset(page_map() + *at / kPage, 0, (memory.size() + kPage - 1) / kPage);
}

bool Arena::Contains(GpuVa address, uint64_t bytes) const {
  const uint64_t reached = Raw(address) - kArenaVa;
  if (reached < ReachSpace::kBytes) return shared_->Contains(reached, bytes);
  if (Raw(address) >= kMappedVa) return mappable_->Contains(Raw(address) - kMappedVa, bytes);
  const uint64_t offset = Raw(address) - vram_va();
  if (offset >= memory_.most()) return false;
  MutexLock lock(mutex_);
  auto it = used_.upper_bound(offset);
  if (it == used_.begin()) return false;
  --it;
  const auto& [begin, block] = *it;
  return Inside(offset - begin, bytes, block.asked);
}

std::optional<Arena::Allocation> Arena::LastUpTo(GpuVa address) const {
  if (Raw(address) < kVramVa) {
    const auto shared = Raw(address) < kArenaVa ? std::nullopt : shared_->LastUpTo(Raw(address) - kArenaVa);
    if (!shared) return std::nullopt;
    return Allocation{GpuVa{kArenaVa + shared->offset}, shared->bytes};
  }
  if (Raw(address) >= kMappedVa) {
    if (const auto piece = mappable_->LastUpTo(Raw(address) - kMappedVa))
      return Allocation{GpuVa{kMappedVa + piece->at}, piece->bytes};
  }
  if (Raw(address) < vram_va()) return std::nullopt;
  MutexLock lock(mutex_);
  const auto after = used_.upper_bound(Raw(address) - vram_va());
  if (after == used_.begin()) return std::nullopt;
  const auto& [offset, block] = *std::prev(after);
  return Allocation{GpuVa{vram_va() + offset}, block.asked};
}

}  // namespace vgpud::soft
