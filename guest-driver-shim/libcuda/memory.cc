// SPDX-License-Identifier: Apache-2.0
// Device memory, pinned and registered host memory, and what pointers point to.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "guest-driver-shim/libcuda/channel/image.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed.h"
#include "guest-driver-shim/libcuda/driver/mapped_memory.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/pool.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPitchAlignment = 512;

// Do kernels?
bool IsReached(const HostBlock& block) {
  return block.kind == HostBlock::Kind::kShared || block.kind == HostBlock::Kind::kMapped;
}

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

CUresult Free(CUdeviceptr address) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (address == 0) return CUDA_SUCCESS;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  Device::Allocation allocation;
  {
    std::lock_guard lock(current.device->mutex);
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
    ReturnToPool(allocation.pool, address, allocation.bytes);
    return error;
  }
  if (const auto managed = FreeManaged(current, address)) return *managed;
  command.op = VGPU_OP_MEM_FREE;
  command.args[0] = address;
  return current.channel->Call(command).status;
}

CUresult HostAlloc(void** out, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > ~uint64_t{0} - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  uint64_t shared = 0;
  const CUresult status = AllocShared(current.device, bytes, &shared);
  if (status == CUDA_SUCCESS) {
    std::lock_guard lock(HostMutex());
    HostBlocks()[shared] = {current.device, {}, bytes, flags, HostBlock::Kind::kShared};
    *out = reinterpret_cast<void*>(shared);
  }
  if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
  if (flags & CU_MEMHOSTALLOC_DEVICEMAP) {
    CUdeviceptr address = 0;
    if (const CUresult error = AllocManaged(current, &address, bytes)) return error;
    std::lock_guard lock(HostMutex());
    HostBlocks()[address] = {current.device, {}, bytes, flags, HostBlock::Kind::kMapped};
    *out = reinterpret_cast<void*>(address);
    return CUDA_SUCCESS;
  }
  Transport::Buffer buffer;
  const int error = current.channel->transport().AllocBuffer((bytes + kPage - 1) & ~(kPage - 1), &buffer);
  if (error != 0) return error == EPIPE || error == ECONNRESET ? current.channel->Sticky() : CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(HostMutex());
  HostBlocks()[reinterpret_cast<uint64_t>(buffer.address)] = {current.device, buffer, bytes, flags};
  *out = buffer.address;
  return CUDA_SUCCESS;
}

// Copies work as before; kernels do not reach the memory, so nobody gets a device address for it.
CUresult Register(void* memory, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                              CU_MEMHOSTREGISTER_READ_ONLY;
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto address = reinterpret_cast<uint64_t>(memory);
  if (memory == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsMapped(memory, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(HostMutex());
  const auto next = HostBlocks().lower_bound(address);
  const bool meets_next = next != HostBlocks().end() && next->first < address + bytes;
  if (meets_next || Containing(HostBlocks(), address, 0, HostBytes) != HostBlocks().end())
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  HostBlocks()[address] = {current.device, {}, bytes, flags, HostBlock::Kind::kRegistered};
  return CUDA_SUCCESS;
}

CUresult GetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Command command;
  command.op = VGPU_OP_MEM_INFO;
  const Completion done = current.channel->Call(command);
  if (done.status != CUDA_SUCCESS) return done.status;
  *free_bytes = done.value[0];
  *total_bytes = done.value[1];
  return CUDA_SUCCESS;
}

CUresult AddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  std::lock_guard lock(current.device->mutex);
  const auto it = Containing(current.device->allocations, address, 0, AllocationBytes);
  const auto mapped = FindMapped(address);
  if (it == current.device->allocations.end() && !mapped) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = mapped ? mapped->address : it->first;
  if (bytes != nullptr) *bytes = mapped ? mapped->bytes : it->second.bytes;
  return CUDA_SUCCESS;
}

// One attribute of a pointer; CUDA_ERROR_INVALID_VALUE when it is nobody's.
CUresult PointerAttribute(void* data, int attribute, CUdeviceptr address) {
  CUdeviceptr base = 0;
  uint64_t bytes = 0;
  bool host = false;
  bool mapped = false;
  CUcontext context = nullptr;
  Device* device = nullptr;
  for (const auto& candidate : Driver::Get().devices()) {
    std::lock_guard lock(candidate->mutex);
    const auto it = Containing(candidate->allocations, address, 0, AllocationBytes);
    if (it == candidate->allocations.end()) continue;
    base = it->first;
    bytes = it->second.bytes;
    context = it->second.context->handle;
    device = candidate.get();
  }
  if (const auto piece = FindMapped(address)) {
    base = piece->address;
    bytes = piece->bytes;
    device = piece->device;
  }
  {
    std::lock_guard lock(HostMutex());
    const auto it = Containing(HostBlocks(), address, 0, HostBytes);
    host = it != HostBlocks().end();
    if (!host && device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (host) {
      base = it->first;
      bytes = it->second.bytes;
      mapped = IsReached(it->second);
      device = it->second.device;
      const Current current = CurrentContext(false);
      context = current.error == CUDA_SUCCESS ? current.context->handle : nullptr;
    }
  }
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = context;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (host && !mapped) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(data) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host && !IsManaged(address)) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(data) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<int*>(data) = !host && IsManaged(address) ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<int*>(data) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = device->ordinal;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = base;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(data) = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
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
  const bool wanted = free_bytes != nullptr && total_bytes != nullptr;
  if (const CUresult error = GetInfo(wanted ? &free_wide : nullptr, &total_wide)) return error;
  *free_bytes = static_cast<unsigned>(std::min<size_t>(free_wide, ~0u));
  *total_bytes = static_cast<unsigned>(std::min<size_t>(total_wide, ~0u));
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
    std::lock_guard lock(HostMutex());
    const auto it = HostBlocks().find(reinterpret_cast<uint64_t>(address));
    if (it == HostBlocks().end() || it->second.kind == HostBlock::Kind::kRegistered) return CUDA_ERROR_INVALID_VALUE;
    block = it->second;
    HostBlocks().erase(it);
  }
  if (block.kind == HostBlock::Kind::kMapped) return Free(reinterpret_cast<CUdeviceptr>(address));
  Command command;
  command.op = VGPU_OP_CONTEXT_SYNC;
  block.device->channel->Call(command);
  if (block.kind == HostBlock::Kind::kShared) {
    FreeShared(block.device, reinterpret_cast<uint64_t>(address));
  } else {
    block.device->channel->transport().FreeBuffer(block.buffer);
  }
  return CUDA_SUCCESS;
}

CU_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr* out, void* address, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(HostMutex());
  const auto it = Containing(HostBlocks(), reinterpret_cast<uint64_t>(address), 0, HostBytes);
  if (it == HostBlocks().end() || !IsReached(it->second)) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}

CU_API(cuMemHostRegister_v2)(void* address, size_t bytes, unsigned flags) { return Register(address, bytes, flags); }

CU_API(cuMemHostUnregister)(void* address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(HostMutex());
  const auto it = HostBlocks().find(reinterpret_cast<uint64_t>(address));
  if (it == HostBlocks().end() || it->second.kind != HostBlock::Kind::kRegistered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  HostBlocks().erase(it);
  return CUDA_SUCCESS;
}

CU_API(cuMemHostGetFlags)(unsigned* flags, void* address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(HostMutex());
  const auto it = HostBlocks().find(reinterpret_cast<uint64_t>(address));
  if (it == HostBlocks().end()) return CUDA_ERROR_INVALID_VALUE;
  *flags = it->second.flags;
  return CUDA_SUCCESS;
}

// Addresses are the process', so these need no current context. The runtime asks before it has made one.
CU_API(cuPointerGetAttribute)(void* data, int attribute, CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return PointerAttribute(data, attribute, address);
}

CU_API(cuPointerGetAttributes)(unsigned count, int* attributes, void** data, CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (PointerAttribute(data[i], attributes[i], address) == CUDA_SUCCESS) continue;
    // Foreign memory is not an error here: every answer is zero (the device ordinal -2, as the driver says).
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      case CU_POINTER_ATTRIBUTE_MAPPED:
        memset(data[i], 0, sizeof(int));
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data[i]) = -2;
        break;
      case CU_POINTER_ATTRIBUTE_CONTEXT:
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        memset(data[i], 0, 8);
        break;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}
