// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: addresses that are reserved, device memory that is made, and what maps one to the other.
// The device has memory at an address while it may access it there; memory that it may not access keeps its contents.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "guest-driver-shim/libcuda/api/pool.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/mapped_memory.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kGrain = VGPU_MAPPED_GRAIN;
constexpr uint64_t kBegin = VGPU_MAPPED_VA, kEnd = VGPU_MAPPED_VA + VGPU_MAPPED_BYTES;
constexpr int kPosixFd = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kMostOption = 1;
constexpr unsigned kCompressionGeneric = 1;  // CU_MEM_ALLOCATION_COMP_GENERIC

struct Memory {
  Device* device = nullptr;
  uint64_t number = 0;  // the executor's
  uint64_t bytes = 0;
  CUmemAllocationProp_st told{};
  uint64_t references = 1;  // of the program's
  uint64_t pieces = 0;      // that are mapped
  uint64_t id = NewMemoryId();
};
struct Piece {
  uint64_t bytes = 0;
  uint64_t memory = 0;
  uint64_t offset = 0;
  bool accessible = false;
  uint64_t id = NewMemoryId();
};
uint64_t PieceBytes(const Piece& p) { return p.bytes; }
uint64_t RangeBytes(uint64_t bytes) { return bytes; }

struct State {
  Mutex mutex{lock_rank::kMapped};
  std::map<uint64_t, uint64_t> ranges GUARDED_BY(mutex);  // reserved: bytes by address
  std::map<uint64_t, Memory> memories GUARDED_BY(mutex);  // by handle
  std::map<uint64_t, Piece> pieces GUARDED_BY(mutex);     // by address
  uint64_t next_handle GUARDED_BY(mutex) = 1;
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}
std::atomic<size_t> piece_count{0};

bool AreWhole(uint64_t address, uint64_t bytes) { return bytes != 0 && (address | bytes) % kGrain == 0; }

CUresult Call(Device* device, uint32_t op, const std::array<uint64_t, 4>& args, uint64_t* answer = nullptr) {
  Command command;
  command.op = op;
  std::copy(args.begin(), args.end(), command.args);
  const Completion done = device->channel->Call(command);
  if (answer != nullptr) *answer = done.value[0];
  return done.status;
}

// The pieces of [address, address + bytes) when they fill it without a hole; both ends are the end's otherwise.
auto PiecesOf(State& state, uint64_t address, uint64_t bytes) REQUIRES(state.mutex) {
  const auto none = std::pair{state.pieces.end(), state.pieces.end()};
  const auto first = state.pieces.find(address);
  auto it = first;
  uint64_t at = address;
  for (; it != state.pieces.end() && it->first == at && at - address < bytes; ++it) at += it->second.bytes;
  return bytes != 0 && at - address == bytes ? std::pair{first, it} : none;
}

CUresult SetPieceAccess(State& state, CUdeviceptr address, Piece& piece, bool accessible) REQUIRES(state.mutex) {
  if (piece.accessible == accessible) return CUDA_SUCCESS;
  const Memory& memory = state.memories.at(piece.memory);
  const CUresult error = accessible
                             ? Call(memory.device, VGPU_OP_MEM_MAP, {memory.number, piece.offset, address, piece.bytes})
                             : Call(memory.device, VGPU_OP_MEM_UNMAP, {address, piece.bytes});
  if (error == CUDA_SUCCESS) piece.accessible = accessible;
  return error;
}

CUresult ReleaseUnused(State& state, uint64_t handle) REQUIRES(state.mutex) {
  const auto it = state.memories.find(handle);
  if (it->second.references != 0 || it->second.pieces != 0) return CUDA_SUCCESS;
  const Memory memory = it->second;
  state.memories.erase(it);
  return Call(memory.device, VGPU_OP_MEM_RELEASE, {memory.number});
}

// Keeps the host from having anything there as well.
bool Occupy(uint64_t address, uint64_t bytes) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const got =
      mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return true;
  if (got != MAP_FAILED) munmap(got, bytes);
  return false;
}

bool ReserveAt(State& state, uint64_t address, uint64_t bytes) REQUIRES(state.mutex) {
  if (address < kBegin || address > kEnd || bytes > kEnd - address) return false;
  const auto behind = state.ranges.lower_bound(address);
  if (behind != state.ranges.end() && behind->first - address < bytes) return false;
  if (behind != state.ranges.begin() && address - std::prev(behind)->first < std::prev(behind)->second) return false;
  if (!Occupy(address, bytes)) return false;
  state.ranges[address] = bytes;
  return true;
}

CUresult Reserve(CUdeviceptr* out, uint64_t bytes, uint64_t alignment, CUdeviceptr wish, uint64_t flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || flags != 0 || !AreWhole(0, bytes) || (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  alignment = std::max(alignment, kGrain);
  State& state = TheState();
  MutexLock lock(state.mutex);
  if (wish % alignment == 0 && ReserveAt(state, wish, bytes)) {
    *out = wish;
    return CUDA_SUCCESS;
  }
  const auto aligned = [alignment](uint64_t at) { return (at + alignment - 1) & ~(alignment - 1); };
  std::vector<uint64_t> candidates{aligned(kBegin)};
  for (const auto& [begin, size] : state.ranges) candidates.push_back(aligned(begin + size));
  for (const uint64_t at : candidates) {
    if (!ReserveAt(state, at, bytes)) continue;
    *out = at;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Unreserve(CUdeviceptr address, uint64_t bytes) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.ranges.find(address);
  if (it == state.ranges.end() || it->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto piece = state.pieces.lower_bound(address);
  if (piece != state.pieces.end() && piece->first - address < bytes) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(address), bytes);
  state.ranges.erase(it);
  return CUDA_SUCCESS;
}

// The device whose memory `told` describes.
CUresult DeviceOf(const CUmemAllocationProp_st* told, Device** device) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (told == nullptr || told->type == CU_MEM_ALLOCATION_TYPE_INVALID ||
      told->location.type == CU_MEM_LOCATION_TYPE_INVALID)
    return CUDA_ERROR_INVALID_VALUE;
  if (told->type != CU_MEM_ALLOCATION_TYPE_PINNED || told->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult error = Driver::Get().OpenDevice(told->location.id, device)) return error;
  return (*device)->attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 ? CUDA_SUCCESS
                                                                                            : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult Create(unsigned long long* handle, uint64_t bytes, const CUmemAllocationProp_st* told, uint64_t flags) {
  Device* device = nullptr;
  if (const CUresult error = DeviceOf(told, &device)) return error;
  if (handle == nullptr || flags != 0 || !AreWhole(0, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto& wanted = told->allocFlags;
  if (told->win32HandleMetaData != nullptr || wanted.compressionType > kCompressionGeneric ||
      std::any_of(std::begin(wanted.reserved), std::end(wanted.reserved), [](unsigned char byte) { return byte != 0; }))
    return CUDA_ERROR_INVALID_VALUE;
  // Programs ask for handles that they may pass on some day; when they do, cuMemExportToShareableHandle refuses.
  if ((told->requestedHandleTypes & ~kPosixFd) != 0 || wanted.gpuDirectRDMACapable != 0 || wanted.usage != 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t number = 0;
  CUresult error = Call(device, VGPU_OP_MEM_CREATE, {bytes}, &number);
  if (error == CUDA_ERROR_OUT_OF_MEMORY) {
    TrimPools(device);
    device->channel->FreeDeferred();
    error = Call(device, VGPU_OP_MEM_CREATE, {bytes}, &number);
  }
  if (error != CUDA_SUCCESS) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  *handle = state.next_handle++;
  CUmemAllocationProp_st made = *told;
  made.allocFlags.compressionType = 0;  // a hint: the program asks what has come of it
  state.memories[*handle] = {device, number, bytes, made};
  return CUDA_SUCCESS;
}

CUresult Release(unsigned long long handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.memories.find(handle);
  if (it == state.memories.end() || it->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  --it->second.references;
  return ReleaseUnused(state, handle);
}

CUresult Map(CUdeviceptr address, uint64_t bytes, uint64_t offset, unsigned long long handle, uint64_t flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto memory = state.memories.find(handle);
  if (memory == state.memories.end() || memory->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != 0 || !AreWhole(address | offset, bytes) || offset > memory->second.bytes ||
      bytes > memory->second.bytes - offset ||
      Containing(state.ranges, address, bytes, RangeBytes) == state.ranges.end())
    return CUDA_ERROR_INVALID_VALUE;
  const auto behind = state.pieces.lower_bound(address);
  if (behind != state.pieces.end() && behind->first - address < bytes) return CUDA_ERROR_INVALID_VALUE;
  if (Containing(state.pieces, address, 0, PieceBytes) != state.pieces.end()) return CUDA_ERROR_INVALID_VALUE;
  state.pieces[address] = {bytes, handle, offset};
  ++memory->second.pieces;
  piece_count = state.pieces.size();
  return CUDA_SUCCESS;
}

CUresult Unmap(CUdeviceptr address, uint64_t bytes) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  auto [it, end] = PiecesOf(state, address, bytes);
  if (it == end) return CUDA_ERROR_INVALID_VALUE;
  while (it != end) {
    if (const CUresult error = SetPieceAccess(state, it->first, it->second, false)) return error;
    const uint64_t handle = it->second.memory;
    it = state.pieces.erase(it);
    piece_count = state.pieces.size();
    --state.memories.at(handle).pieces;
    if (const CUresult error = ReleaseUnused(state, handle)) return error;
  }
  return CUDA_SUCCESS;
}

// Of each location at most one device can access a piece: that of its memory.
CUresult SetAccess(CUdeviceptr address, uint64_t bytes, const CUmemAccessDesc_st* wanted, uint64_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (wanted == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto [begin, end] = PiecesOf(state, address, bytes);
  if (begin == end) return CUDA_ERROR_INVALID_VALUE;
  for (const CUmemAccessDesc_st& each : std::span(wanted, count)) {
    if (each.flags == CU_MEM_ACCESS_FLAGS_PROT_READ || each.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (each.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && each.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    const Device* const device = Driver::Get().device(each.location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    for (auto it = begin; it != end; ++it)
      if (state.memories.at(it->second.memory).device != device) return CUDA_ERROR_NOT_SUPPORTED;
  }
  const bool accessible = wanted[count - 1].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (auto it = begin; it != end; ++it)
    if (const CUresult error = SetPieceAccess(state, it->first, it->second, accessible)) return error;
  return CUDA_SUCCESS;
}

CUresult GetAccess(unsigned long long* flags, const CUmemLocation_st* location, CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = Containing(state.pieces, address, 0, PieceBytes);
  if (it == state.pieces.end()) return CUDA_ERROR_INVALID_VALUE;
  const bool here = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                    Driver::Get().device(location->id) == state.memories.at(it->second.memory).device;
  *flags = here && it->second.accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace

std::optional<MappedPiece> FindMapped(CUdeviceptr address) {
  if (piece_count.load(std::memory_order_relaxed) == 0) return std::nullopt;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = Containing(state.pieces, address, 0, PieceBytes);
  if (it == state.pieces.end()) return std::nullopt;
  const Memory& memory = state.memories.at(it->second.memory);
  return MappedPiece{memory.device, it->first, it->second.bytes, it->second.id, memory.id};
}

bool IsMappedOn(Device* device, CUdeviceptr address, uint64_t bytes) {
  if (piece_count.load(std::memory_order_relaxed) == 0) return false;
  State& state = TheState();
  MutexLock lock(state.mutex);
  for (auto it = Containing(state.pieces, address, 0, PieceBytes); it != state.pieces.end(); ++it) {
    if (address < it->first || !it->second.accessible || state.memories.at(it->second.memory).device != device)
      return false;
    const uint64_t rest = it->second.bytes - (address - it->first);
    if (bytes <= rest) return true;
    bytes -= rest;
    address += rest;
  }
  return false;
}

void ForgetMappedOf(Device* device) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto is_its = [&](const auto& each)
                          REQUIRES(state.mutex) { return state.memories.at(each.second.memory).device == device; };
  std::erase_if(state.pieces, is_its);
  std::erase_if(state.memories, [device](const auto& each) { return each.second.device == device; });
  piece_count = state.pieces.size();
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuMemAddressReserve)
(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  return Reserve(address, bytes, alignment, wish, flags);
}
CU_API(cuMemAddressFree)(CUdeviceptr address, size_t bytes) { return Unreserve(address, bytes); }

CU_API(cuMemCreate)
(unsigned long long* handle, size_t bytes, const CUmemAllocationProp_st* told, unsigned long long flags) {
  return Create(handle, bytes, told, flags);
}
CU_API(cuMemRelease)(unsigned long long handle) { return Release(handle); }

CU_API(cuMemMap)
(CUdeviceptr address, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags) {
  return Map(address, bytes, offset, handle, flags);
}
CU_API(cuMemUnmap)(CUdeviceptr address, size_t bytes) { return Unmap(address, bytes); }

CU_API(cuMemSetAccess)(CUdeviceptr address, size_t bytes, const CUmemAccessDesc_st* wanted, size_t count) {
  return SetAccess(address, bytes, wanted, count);
}
CU_API(cuMemGetAccess)(unsigned long long* flags, const CUmemLocation_st* location, CUdeviceptr address) {
  return GetAccess(flags, location, address);
}

CU_API(cuMemGetAllocationGranularity)(size_t* bytes, const CUmemAllocationProp_st* told, int option) {
  Device* device = nullptr;
  if (const CUresult error = DeviceOf(told, &device)) return error;
  if (bytes == nullptr || option < 0 || option > kMostOption) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGrain;
  return CUDA_SUCCESS;
}

CU_API(cuMemGetAllocationPropertiesFromHandle)(CUmemAllocationProp_st* told, unsigned long long handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.memories.find(handle);
  if (told == nullptr || it == state.memories.end() || it->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  *told = it->second.told;
  return CUDA_SUCCESS;
}

CU_API(cuMemRetainAllocationHandle)(unsigned long long* handle, void* address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = Containing(state.pieces, reinterpret_cast<CUdeviceptr>(address), 0, PieceBytes);
  if (handle == nullptr || it == state.pieces.end()) return CUDA_ERROR_INVALID_VALUE;
  *handle = it->second.memory;
  ++state.memories.at(*handle).references;
  return CUDA_SUCCESS;
}
