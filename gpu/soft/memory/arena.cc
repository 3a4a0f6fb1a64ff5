// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "base/check.h"
#include "base/checked.h"
#include "gpu/soft/code/inst.h"

namespace vgpud::soft {
namespace {
constexpr uint64_t kPage = uint64_t{1} << kPageShift;
}  // namespace

uint64_t Arena::first_va() { return kArenaVa; }
uint8_t* Arena::vram_pages() const { return page_map() + ReachSpace::kBytes / kPage; }

Arena::Arena(uint64_t bytes, const ReachSpace& reach) : bytes_(CheckedSize(bytes).AlignedUp(kPage).saturated()) {
  if (bytes_ == 0) bytes_ = kPage;
  auto memory =
      reach.device_memory == nullptr ? GuardedMemory::Make(bytes_) : GuardedMemory::MakeAt(reach.device_memory, bytes_);
  CHECK(memory);
  memory_ = std::move(*memory);
  // Mostly of shared memory that is not there: only what is used takes memory.
  auto pages = Mapping::Anonymous((ReachSpace::kBytes + bytes_) / kPage);
  CHECK(pages);
  page_mapped_ = std::move(*pages);
  shared_.emplace(reach);
  free_[0] = bytes_;
  page_users_.resize(bytes_ / kPage);
}

void Arena::MapPages(uint64_t offset, uint64_t bytes, int delta) {
  for (uint64_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) {
    page_users_[page] += static_cast<uint32_t>(delta);
    vram_pages()[page] = page_users_[page] != 0;
    // A page without users goes back to the host and reads as zero when it is used again.
    if (page_users_[page] == 0) madvise(memory() + page * kPage, kPage, MADV_DONTNEED);
  }
}

GpuResult<GpuVa> Arena::Alloc(uint64_t bytes, bool pinned) {
  if (bytes == 0) return GpuFail(CuStatus::kInvalidValue, "allocation of 0 bytes");
  if (bytes > bytes_)
    return GpuFail(CuStatus::kOutOfMemory, fmt::format("{} bytes asked, the device has {}", bytes, bytes_));
  const uint64_t need = Rounded(bytes);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < need) continue;
    const uint64_t offset = it->first;
    const uint64_t rest = it->second - need;
    free_.erase(it);
    if (rest != 0) free_[offset + need] = rest;
    {
      const std::lock_guard lock(mutex_);
      used_[offset] = {need, bytes, pinned};
    }
    MapPages(offset, need, 1);
    return GpuVa{kVramVa + offset};
  }
  return GpuFail(CuStatus::kOutOfMemory, fmt::format("no free range of {} bytes in device memory", need));
}

std::optional<uint64_t> Arena::Free(GpuVa address, bool pinned) {
  const auto it = used_.find(Raw(address) - kVramVa);
  if (it == used_.end() || it->second.pinned != pinned) return std::nullopt;
  uint64_t offset = it->first;
  const uint64_t given_back = it->second.bytes;
  uint64_t bytes = given_back;
  {
    const std::lock_guard lock(mutex_);
    used_.erase(it);
  }
  MapPages(offset, bytes, -1);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return given_back;
    }
  }
  free_[offset] = bytes;
  return given_back;
}

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
  const uint64_t offset = Raw(address) - kVramVa;
  if (offset >= bytes_) return false;
  const std::lock_guard lock(mutex_);
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
  const auto after = used_.upper_bound(Raw(address) - kVramVa);
  if (after == used_.begin()) return std::nullopt;
  const auto& [offset, block] = *std::prev(after);
  return Allocation{GpuVa{kVramVa + offset}, block.asked};
}

}  // namespace vgpud::soft
