// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/memory/movable.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::driver {
namespace {

constexpr uint64_t kGrain = VGPU_MAPPED_GRAIN;
constexpr uint64_t kFirst = VGPU_MAPPED_VA + VGPU_MAPPED_BYTES / 2, kEnd = VGPU_MAPPED_VA + VGPU_MAPPED_BYTES;
// Between two looks at the stop word.
constexpr uint64_t kPiece = uint64_t{4} << 20;

tl::unexpected<GpuError> Failed(const Card& card, Status status, const char* call) {
  return GpuFail(static_cast<CuStatus>(status), fmt::format("{}: {}", call, card.api().Describe(status)));
}

}  // namespace

uint64_t Movable::first_address() { return kFirst; }

Movable::~Movable() {
  card_.Bind();
  for (auto& [address, block] : blocks_) GiveBack(address, block);
}

std::optional<uint64_t> Movable::FindAddresses(uint64_t bytes) const {
  uint64_t at = kFirst;
  for (const auto& [begin, block] : blocks_) {
    if (begin - at >= bytes) return at;
    at = begin + block.whole;
  }
  return kEnd - at >= bytes ? std::optional{at} : std::nullopt;
}

void Movable::Count() {
  on_card_ = off_card_ = 0;
  for (const auto& [address, block] : blocks_) {
    if (block.handle != 0) on_card_ += block.whole;
    if (!IsBack(block)) off_card_ += block.whole;
  }
}

GpuResult<bool> Movable::Make(Block& block) {
  const MemoryProperties told{.location = card_.location()};
  const Status status = card_.api().MemCreate(&block.handle, block.whole, &told, 0);
  if (status == kOk) return true;
  block.handle = 0;
  if (status == cuda_enum::CUDA_ERROR_OUT_OF_MEMORY) return false;
  return Failed(card_, status, "cuMemCreate");
}

GpuResult<void> Movable::Show(uint64_t address, const Block& block) {
  const Api& api = card_.api();
  if (const Status status = api.MemMap(address, block.whole, 0, block.handle, 0); status != kOk)
    return Failed(card_, status, "cuMemMap");
  const MemoryAccess access{card_.location()};
  if (const Status status = api.MemSetAccess(address, block.whole, &access, 1); status != kOk)
    return Failed(card_, status, "cuMemSetAccess");
  return {};
}

void Movable::GiveBack(uint64_t address, Block& block) {
  if (block.handle == 0) return;
  (void)card_.api().MemUnmap(address, block.whole);
  (void)card_.api().MemRelease(block.handle);
  block.handle = 0;
  block.made = false;
}

GpuResult<GpuVa> Movable::Alloc(uint64_t bytes) {
  const CheckedSize whole = CheckedSize(bytes).AlignedUp(kGrain);
  const auto address = FindAddresses(whole.saturated());
  if (!address) return GpuFail(CuStatus::kOutOfMemory, fmt::format("no addresses are left for {} bytes", bytes));
  Block block;
  block.bytes = bytes;
  block.whole = whole.saturated();
  card_.Bind();
  if (TRY(Make(block)))
    if (auto shown = Show(*address, block); !shown) {
      GiveBack(*address, block);
      return tl::unexpected(std::move(shown.error()));
    }
  blocks_.emplace(*address, std::move(block));
  Count();
  return GpuVa{*address};
}

std::optional<uint64_t> Movable::Free(GpuVa address) {
  const auto it = blocks_.find(Raw(address));
  if (it == blocks_.end()) return std::nullopt;
  const uint64_t bytes = it->second.bytes;
  card_.Bind();
  GiveBack(it->first, it->second);
  blocks_.erase(it);
  Count();
  return bytes;
}

GpuResult<std::span<std::byte>> Movable::OffCard(GpuVa address, uint64_t bytes, bool written) {
  auto it = blocks_.upper_bound(Raw(address));
  if (it == blocks_.begin()) return std::span<std::byte>{};
  --it;
  Block& block = it->second;
  const uint64_t offset = Raw(address) - it->first;
  if (IsBack(block) || offset > block.whole || bytes > block.whole - offset) return std::span<std::byte>{};
  if (block.host.data() == nullptr) {
    auto host = Mapping::Anonymous(block.whole);
    if (!host) return GpuFail(CuStatus::kOutOfMemory, "memory that is off the card: " + host.error().context);
    block.host = std::move(*host);
  }
  if (written) block.returned = 0;
  return block.host.bytes().subspan(offset, bytes);
}

template <class F>
GpuResult<void> Movable::Copy(const char* what, F start) {
  const Stream stream = TRY(lanes_.copies());
  Status status = start(stream);
  if (status == kOk) status = card_.api().StreamSynchronize(stream);
  if (status != kOk) return Failed(card_, status, what);
  return {};
}

GpuResult<void> Movable::EvictBlock(uint64_t address, Block& block) {
  const Api& api = card_.api();
  if (block.host.data() == nullptr && !block.made) {
    auto host = Mapping::Anonymous(block.whole);
    if (!host) return GpuFail(CuStatus::kOutOfMemory, "memory that is off the card: " + host.error().context);
    TRY(Copy("copy off the card",
             [&](Stream stream) { return api.MemcpyDtoHAsync(host->data(), address, block.whole, stream); }));
    block.host = std::move(*host);
  }
  block.returned = 0;
  TRY(Copy("overwriting what leaves the card",
           [&](Stream stream) { return api.MemsetD8Async(address, 0, block.whole, stream); }));
  GiveBack(address, block);
  return {};
}

GpuResult<uint64_t> Movable::Evict() {
  card_.Bind();
  uint64_t bytes = 0;
  GpuResult<void> moved{};
  for (auto& [address, block] : blocks_) {
    if (block.handle == 0 || !moved) continue;
    moved = EvictBlock(address, block);
    if (moved) bytes += block.whole;
  }
  Count();
  if (!moved && bytes == 0) return tl::unexpected(std::move(moved.error()));
  return bytes;
}

// All or nothing: two contexts with a part of the card each would wait for each other. A turn that ends in the middle
// is no reason to give anything back, a card that is full is.
GpuResult<Evictable::Back> Movable::MakeAll(const StopWord& stop) {
  bool begun = false;
  for (auto& [address, block] : blocks_) {
    if (block.handle != 0) continue;
    if (begun && stop.Stopped()) return Back::kStopped;
    begun = true;
    const auto there = Make(block);
    no_room_ = !there || !*there;
    if (!there) return tl::unexpected(there.error());
    if (no_room_) return Back::kNoRoom;
    block.made = true;
    TRY(Show(address, block));
  }
  for (auto& [address, block] : blocks_) block.made = false;
  return Back::kAll;
}

GpuResult<Evictable::Back> Movable::GiveBackMade(const StopWord& stop) {
  bool begun = false;
  for (auto& [address, block] : blocks_) {
    if (!block.made) continue;
    if (begun && stop.Stopped()) return Back::kStopped;
    begun = true;
    GiveBack(address, block);
  }
  no_room_ = false;
  return Back::kNoRoom;
}

GpuResult<Evictable::Back> Movable::BringBack(const StopWord& stop, uint64_t* bytes) {
  if (off_card_ == 0) return Back::kAll;
  card_.Bind();
  const auto made = no_room_ ? GpuResult<Back>(Back::kNoRoom) : MakeAll(stop);
  const auto answer = made && *made == Back::kNoRoom ? GiveBackMade(stop) : made;
  if (!answer || *answer != Back::kAll) {
    Count();
    return answer;
  }
  for (auto& [address, block] : blocks_) {
    while (block.host.data() != nullptr) {
      const uint64_t piece = std::min(kPiece, block.whole - block.returned);
      TRY(Copy("copy back to the card", [&](Stream stream) {
        return card_.api().MemcpyHtoDAsync(address + block.returned, block.host.data() + block.returned, piece, stream);
      }));
      *bytes += piece;
      block.returned += piece;
      if (block.returned == block.whole) block.host = Mapping{};
      if (stop.Stopped()) break;
    }
    if (stop.Stopped()) break;
  }
  Count();
  return off_card_ == 0 ? Back::kAll : Back::kStopped;
}

}  // namespace vgpud::driver
