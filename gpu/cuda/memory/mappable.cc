// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/memory/mappable.h"

#include <fmt/core.h>

#include <iterator>

#include "gpu/capability/late_mapping.h"
#include "gpu/cuda/memory/movable.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::driver {
namespace {

static_assert(VGPU_MAPPED_GRAIN == LateMapping::kMappingGrain);

bool AreWhole(uint64_t address, uint64_t bytes) { return bytes != 0 && (address | bytes) % VGPU_MAPPED_GRAIN == 0; }

bool AreMappable(uint64_t address, uint64_t bytes) {
  return AreWhole(address, bytes) && address >= VGPU_MAPPED_VA && bytes <= VGPU_MAPPED_BYTES &&
         address - VGPU_MAPPED_VA <= VGPU_MAPPED_BYTES - bytes;
}

tl::unexpected<GpuError> Failed(const Card& card, Status status, const char* call) {
  return GpuFail(static_cast<CuStatus>(status), fmt::format("{}: {}", call, card.api().Describe(status)));
}

}  // namespace

Mappable::~Mappable() {
  card_.Bind();
  for (const auto& [address, piece] : pieces_) (void)card_.api().MemUnmap(address, piece.bytes);
  for (const auto& [number, memory] : memories_) (void)card_.api().MemRelease(memory.handle);
}

GpuResult<uint64_t> Mappable::Create(uint64_t bytes) {
  if (!card_.maps_memory()) return GpuFail(CuStatus::kNotSupported, "this GPU can't map memory to addresses later");
  if (!AreWhole(0, bytes)) return GpuFail(CuStatus::kInvalidValue, fmt::format("{} bytes to be mapped", bytes));
  card_.Bind();
  const MemoryProperties told{.location = card_.location()};
  MemoryHandle handle = 0;
  if (const Status status = card_.api().MemCreate(&handle, bytes, &told, 0); status != kOk)
    return Failed(card_, status, "cuMemCreate");
  memories_[next_] = {handle, bytes};
  return next_++;
}

GpuResult<uint64_t> Mappable::Release(uint64_t number) {
  const auto it = memories_.find(number);
  if (it == memories_.end())
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("there is no memory {} to be mapped", number));
  if (it->second.mapped) return GpuFail(CuStatus::kInvalidValue, fmt::format("memory {} is mapped", number));
  const Memory memory = it->second;
  memories_.erase(it);
  card_.Bind();
  if (const Status status = card_.api().MemRelease(memory.handle); status != kOk)
    return Failed(card_, status, "cuMemRelease");
  return memory.bytes;
}

GpuResult<void> Mappable::Map(uint64_t number, uint64_t offset, GpuVa to, uint64_t bytes) {
  const auto it = memories_.find(number);
  if (it == memories_.end())
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("there is no memory {} to be mapped", number));
  Memory& memory = it->second;
  const uint64_t address = Raw(to);
  if (!AreMappable(address, bytes) || offset > memory.bytes || bytes > memory.bytes - offset)
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("{} bytes from {} of memory {}, which has {}, can't be at {:#x}", bytes, offset, number,
                               memory.bytes, address));
  if (card_.moves_memory() && address + bytes > Movable::first_address())
    return GpuFail(CuStatus::kOutOfMemory, fmt::format("the addresses at {:#x} are those of allocations", address));
  if (offset != 0 || memory.mapped)
    return GpuFail(CuStatus::kNotSupported, fmt::format("memory {} can be mapped once, and from its begin on", number));
  const auto behind = pieces_.lower_bound(address);
  if ((behind != pieces_.end() && behind->first - address < bytes) ||
      (behind != pieces_.begin() && address - std::prev(behind)->first < std::prev(behind)->second.bytes))
    return GpuFail(CuStatus::kInvalidValue, fmt::format("something is mapped at {:#x} already", address));
  const Api& api = card_.api();
  card_.Bind();
  if (const Status status = api.MemMap(address, bytes, 0, memory.handle, 0); status != kOk)
    return Failed(card_, status, "cuMemMap");
  const MemoryAccess access{card_.location()};
  if (const Status status = api.MemSetAccess(address, bytes, &access, 1); status != kOk) {
    (void)api.MemUnmap(address, bytes);
    return Failed(card_, status, "cuMemSetAccess");
  }
  memory.mapped = true;
  pieces_[address] = {bytes, number};
  ranges_.Add(address, bytes, Ranges::Kind::kMapped);
  return {};
}

GpuResult<void> Mappable::Unmap(GpuVa at, uint64_t bytes) {
  const uint64_t address = Raw(at);
  const auto first = pieces_.find(address);
  uint64_t found = 0;
  auto end = first;
  for (; end != pieces_.end() && end->first == address + found && found < bytes; ++end) found += end->second.bytes;
  if (bytes == 0 || found != bytes)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("{} bytes at {:#x} are not what was mapped", bytes, address));
  card_.Bind();
  for (auto it = first; it != end; it = pieces_.erase(it)) {
    if (const Status status = card_.api().MemUnmap(it->first, it->second.bytes); status != kOk)
      return Failed(card_, status, "cuMemUnmap");
    memories_.at(it->second.memory).mapped = false;
    (void)ranges_.Remove(it->first, Ranges::Kind::kMapped);
  }
  return {};
}

}  // namespace vgpud::driver
