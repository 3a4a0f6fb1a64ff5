// SPDX-License-Identifier: Apache-2.0
// Device memory, pinned and registered host memory.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "guest-driver-shim/libcuda/api/pool.h"
#include "guest-driver-shim/libcuda/channel/image.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/imported_memory.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/mapped_memory.h"
#include "guest-driver-shim/libcuda/driver/registered_memory.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPitchAlignment = 512;

CUresult Alloc(CUdeviceptr* out, size_t bytes) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  const CUresult error = AllocDevice(current, out, bytes);
  if (error != CUDA_ERROR_OUT_OF_MEMORY) return error;
  TrimPools(current.device);
  return AllocDevice(current, out, bytes);
}

// With any context current, or none.
CUresult FreeDevice(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  Device* const device = DeviceOf(address);
  const Current current = device != nullptr ? PrimaryOf(device) : CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  Device::Allocation allocation;
  {
    MutexLock lock(current.device->mutex);
    const auto it = current.device->allocations.find(address);
    if (it == current.device->allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    if (it->second.of_graph) return EndGraphAllocation(it->second);
    allocation = it->second;
    current.device->allocations.erase(it);
  }
  Command command;
  if (allocation.pool != nullptr) {
    command.op = VGPU_OP_CONTEXT_SYNC;
    const CUresult error = current.channel->Call(command).status;
    ReturnToPool(std::move(allocation.pool), address, allocation.bytes);
    return error;
  }
  if (const auto managed = FreeManaged(current, address)) return *managed;
  command.op = VGPU_OP_MEM_FREE;
  command.args[0] = address;
  return current.channel->Call(command).status;
}

CUresult Free(CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return IsHostBlock(address) ? CUDA_ERROR_INVALID_VALUE : FreeDevice(address);  // cuMemFreeHost is for that
}

// A block, and what kernels have of it at an address of their own.
void NoteBoth(uint64_t begin, const HostBlock& block) REQUIRES(HostMutex()) {
  HostBlocks()[begin] = block;
  // What is at that address here is something else when it was imported.
  if (!block.device->imports_memory)
    HostBlocks()[block.other] = {block.device, {}, block.bytes, block.flags, HostBlock::Kind::kOfKernels, begin};
}

CUresult HostAlloc(void** out, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *out = nullptr;
    return CUDA_SUCCESS;
  }
  if (bytes > ~uint64_t{0} - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  uint64_t shared = 0;
  const CUresult status = AllocShared(current.device, bytes, &shared);
  if (status == CUDA_SUCCESS) {
    MutexLock lock(HostMutex());
    HostBlocks()[shared] = {current.device, {}, bytes, flags, HostBlock::Kind::kShared};
    *out = reinterpret_cast<void*>(shared);
  }
  if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
  Transport::Buffer buffer;
  CUdeviceptr there = 0;
  if (!AddressesAreFree() && current.device->shares_memory &&
      AllocApart(current.device, bytes, &buffer, &there) == CUDA_SUCCESS) {
    MutexLock lock(HostMutex());
    NoteBoth(reinterpret_cast<uint64_t>(buffer.address),
             {current.device, {}, bytes, flags, HostBlock::Kind::kShared, there});
    *out = buffer.address;
    return CUDA_SUCCESS;
  }
  if (flags & CU_MEMHOSTALLOC_DEVICEMAP) {
    CUdeviceptr address = 0;
    if (const CUresult error = AllocManaged(current, &address, bytes)) return error;
    MutexLock lock(HostMutex());
    HostBlocks()[address] = {current.device, {}, bytes, flags, HostBlock::Kind::kMapped};
    *out = reinterpret_cast<void*>(address);
    return CUDA_SUCCESS;
  }
  const int error = current.channel->transport().AllocBuffer((bytes + kPage - 1) & ~(kPage - 1), &buffer);
  if (error != 0) return error == EPIPE || error == ECONNRESET ? current.channel->Broken() : CUDA_ERROR_OUT_OF_MEMORY;
  MutexLock lock(HostMutex());
  HostBlocks()[reinterpret_cast<uint64_t>(buffer.address)] = {current.device, buffer, bytes, flags};
  *out = buffer.address;
  return CUDA_SUCCESS;
}

// Lets kernels reach memory of the program's own, or memory that it has in common with others. Its pages are replaced
// only where they can't be reached as they are.
CUresult Reach(Device* device, uint64_t begin, uint64_t bytes, CUdeviceptr* there) {
  if (device->imports_memory) return ImportMemory(device, begin, bytes, there);
  const CUresult pinned = PinShared(device, begin, bytes, there);
  if (pinned != CUDA_ERROR_NOT_SUPPORTED) return pinned;
  const CUresult error = ShareRegistered(device, begin, bytes, there);
  if (error != CUDA_ERROR_INVALID_VALUE) return error;
  const CUresult imported = ImportMemory(device, begin, bytes, there);
  return imported == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_INVALID_VALUE : imported;
}

// They do not use it any more.
CUresult Unreach(Device* device, uint64_t begin, CUdeviceptr there) {
  if (const CUresult error = UnshareRegistered(begin)) return error;
  UnpinShared(device, there);
  ForgetImported(begin);
  return CUDA_SUCCESS;
}

// Lets kernels reach registered memory, and notes where; the memory is in a block of the program's own.
CUresult Share(uint64_t address, CUdeviceptr* out) {
  HostBlock block;
  {
    MutexLock lock(HostMutex());
    const auto it = Containing(HostBlocks(), address, 0, HostBytes);
    if (it == HostBlocks().end()) return CUDA_ERROR_INVALID_VALUE;
    block = it->second;
    *out = IsReached(block) ? OfKernels(*it, address) : it->first;
    if (IsReached(block)) return CUDA_SUCCESS;
    if (block.kind != HostBlock::Kind::kRegistered) return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t begin = *out;
  CUdeviceptr there = 0;
  if (const CUresult error = Reach(block.device, begin, block.bytes, &there)) return error;
  MutexLock lock(HostMutex());
  const auto it = HostBlocks().find(begin);
  if (it == HostBlocks().end()) {  // the program has unregistered it meanwhile
    Unreach(block.device, begin, there);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (it->second.other != 0) {  // or another thread has asked for the same
    UnpinShared(block.device, there);
    there = it->second.other;
  }
  block.other = there;
  NoteBoth(begin, block);
  *out = there + (address - begin);
  return CUDA_SUCCESS;
}

// Copies work as before. Kernels reach the memory from when the program asks where they have it: whoever only wants
// copies does not pay for that.
CUresult Register(void* memory, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                              CU_MEMHOSTREGISTER_READ_ONLY;
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto address = reinterpret_cast<uint64_t>(memory);
  if (memory == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsMapped(memory, bytes)) return CUDA_ERROR_INVALID_VALUE;
  {
    MutexLock lock(HostMutex());
    const auto next = HostBlocks().lower_bound(address);
    const bool meets_next = next != HostBlocks().end() && next->first < address + bytes;
    if (meets_next || Containing(HostBlocks(), address, 0, HostBytes) != HostBlocks().end())
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    HostBlocks()[address] = {current.device, {}, bytes, flags, HostBlock::Kind::kRegistered};
  }
  CUdeviceptr there = 0;
  if ((flags & CU_MEMHOSTREGISTER_DEVICEMAP) == 0 || Share(address, &there) != CUDA_ERROR_OUT_OF_MEMORY)
    return CUDA_SUCCESS;
  MutexLock lock(HostMutex());
  HostBlocks().erase(address);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Either may be null.
CUresult GetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  Command command;
  command.op = VGPU_OP_MEM_INFO;
  const Completion done = current.channel->Call(command);
  if (done.status != CUDA_SUCCESS) return done.status;
  if (free_bytes != nullptr) *free_bytes = done.value[0];
  if (total_bytes != nullptr) *total_bytes = done.value[1];
  return CUDA_SUCCESS;
}

// Of host memory that kernels reach, too.
CUresult AddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  if (const Current current = CurrentContext(false); current.error != CUDA_SUCCESS) return current.error;
  const auto tell = [&](CUdeviceptr begin, uint64_t size) {
    if (base != nullptr) *base = begin;
    if (bytes != nullptr) *bytes = size;
    return CUDA_SUCCESS;
  };
  if (const auto mapped = FindMapped(address)) return tell(mapped->address, mapped->bytes);
  if (Device* const device = DeviceOf(address)) {
    MutexLock lock(device->mutex);
    const auto it = Containing(device->allocations, address, 0, AllocationBytes);
    if (it != device->allocations.end()) return tell(it->first, it->second.bytes);
  }
  MutexLock lock(HostMutex());
  const auto it = Containing(HostBlocks(), address, 0, HostBytes);
  return it != HostBlocks().end() ? tell(it->first, it->second.bytes) : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuMemAlloc_v2)(CUdeviceptr* out, size_t bytes) { return Alloc(out, bytes); }
CU_API(cuMemFree_v2)(CUdeviceptr address) { return Free(address); }

CU_API(cuMemAllocPitch_v2)
(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element_bytes) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return CUDA_ERROR_INVALID_VALUE;
  size_t row, bytes;
  if (__builtin_add_overflow(width, kPitchAlignment - 1, &row)) return CUDA_ERROR_INVALID_VALUE;
  row &= ~(kPitchAlignment - 1);
  if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult error = Alloc(out, bytes);
  if (error == CUDA_SUCCESS) *pitch = row;
  return error;
}

CU_API(cuMemGetInfo_v2)(size_t* free_bytes, size_t* total_bytes) { return GetInfo(free_bytes, total_bytes); }
// The forms of before CUDA 3.2 whose numbers fit, and those whose numbers are cut to what fits.
CU_API(cuMemGetInfo)(unsigned* free_bytes, unsigned* total_bytes) {
  size_t free_wide = 0, total_wide = 0;
  if (const CUresult error = GetInfo(&free_wide, &total_wide)) return error;
  if (free_bytes != nullptr) *free_bytes = static_cast<unsigned>(std::min<size_t>(free_wide, ~0u));
  if (total_bytes != nullptr) *total_bytes = static_cast<unsigned>(std::min<size_t>(total_wide, ~0u));
  return CUDA_SUCCESS;
}
CU_API(cuMemAllocHost)(void** out, unsigned bytes) { return HostAlloc(out, bytes, 0); }
CU_API(cuMemHostRegister)(void* address, size_t bytes, unsigned flags) { return Register(address, bytes, flags); }
CU_API(cuMemGetAddressRange_v2)(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return AddressRange(base, bytes, address);
}

CU_API(cuMemHostAlloc)(void** out, size_t bytes, unsigned flags) { return HostAlloc(out, bytes, flags); }
CU_API(cuMemAllocHost_v2)(void** out, size_t bytes) { return HostAlloc(out, bytes, 0); }

CU_API(cuMemFreeHost)(void* address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (address == nullptr) return CUDA_SUCCESS;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  HostBlock block;
  {
    MutexLock lock(HostMutex());
    const auto it = HostBlocks().find(reinterpret_cast<uint64_t>(address));
    if (it == HostBlocks().end() || it->second.kind == HostBlock::Kind::kRegistered ||
        it->second.kind == HostBlock::Kind::kOfKernels)
      return CUDA_ERROR_INVALID_VALUE;
    block = it->second;
    HostBlocks().erase(it);
    HostBlocks().erase(block.other);
  }
  if (block.kind == HostBlock::Kind::kMapped) return FreeDevice(reinterpret_cast<CUdeviceptr>(address));
  Command command;
  command.op = VGPU_OP_CONTEXT_SYNC;
  block.device->channel->Call(command);
  if (block.kind == HostBlock::Kind::kShared) {
    FreeShared(block.device, block.other != 0 ? block.other : reinterpret_cast<uint64_t>(address));
  } else {
    block.device->channel->transport().FreeBuffer(block.buffer);
  }
  return CUDA_SUCCESS;
}

CU_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr* out, void* address, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = Share(reinterpret_cast<uint64_t>(address), out);
  return error == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_INVALID_VALUE : error;
}

CU_API(cuMemHostRegister_v2)(void* address, size_t bytes, unsigned flags) { return Register(address, bytes, flags); }

CU_API(cuMemHostUnregister)(void* address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostBlock block;
  {
    MutexLock lock(HostMutex());
    const auto it = Containing(HostBlocks(), reinterpret_cast<uint64_t>(address), 0, HostBytes);
    if (it == HostBlocks().end()) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    const bool begins = it->first == reinterpret_cast<uint64_t>(address);
    if (it->second.kind != HostBlock::Kind::kRegistered || !begins) return CUDA_ERROR_INVALID_VALUE;
    block = it->second;
    HostBlocks().erase(it);
    if (!block.device->imports_memory) HostBlocks().erase(block.other);
  }
  if (block.other == 0) return CUDA_SUCCESS;
  Command command;
  command.op = VGPU_OP_CONTEXT_SYNC;
  block.device->channel->Call(command);
  const CUresult error = Unreach(block.device, reinterpret_cast<uint64_t>(address), block.other);
  if (error == CUDA_SUCCESS) return CUDA_SUCCESS;
  MutexLock lock(HostMutex());
  NoteBoth(reinterpret_cast<uint64_t>(address), block);  // it still is
  return error;
}

CU_API(cuMemHostGetFlags)(unsigned* flags, void* address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(HostMutex());
  const auto it = Containing(HostBlocks(), reinterpret_cast<uint64_t>(address), 0, HostBytes);
  if (it == HostBlocks().end()) return CUDA_ERROR_INVALID_VALUE;
  // With unified addresses what kernels can reach is mapped, whatever was asked for.
  *flags = it->second.flags | (IsReached(it->second) ? CU_MEMHOSTALLOC_DEVICEMAP : 0);
  return CUDA_SUCCESS;
}
