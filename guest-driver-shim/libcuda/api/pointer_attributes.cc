// SPDX-License-Identifier: Apache-2.0
// What pointers point to. Addresses are the process', so no call here needs a current context: the runtime asks before
// it has made one.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "guest-driver-shim/libcuda/api/pool.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/mapped_memory.h"

namespace vgpud::cuda {
namespace {

struct Pointee {
  CUdeviceptr address = 0;  // asked for
  CUdeviceptr base = 0;
  uint64_t bytes = 0;
  Device* device = nullptr;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  uint64_t id = 0;
  uint64_t memory_id = 0;
  bool host = false;
  bool reached = true;  // by kernels
  bool sync_copies = false;
  bool managed = false;
  CUdeviceptr of_kernels = 0;  // where they have it
  CUdeviceptr of_host = 0;     // where the program has it
};

std::optional<Pointee> OfDevice(Device& device, CUdeviceptr address) {
  const bool managed = IsManaged(address);
  MutexLock lock(device.mutex);
  const auto it = Containing(device.allocations, address, 0, AllocationBytes);
  if (it == device.allocations.end()) return std::nullopt;
  const Device::Allocation& a = it->second;
  // Memory of a pool has no context.
  return Pointee{address,
                 it->first,
                 a.bytes,
                 &device,
                 a.pool ? nullptr : a.context->handle,
                 a.pool ? HandleOf(*a.pool) : nullptr,
                 a.id,
                 a.id,
                 false,
                 true,
                 a.sync_copies,
                 managed,
                 address,
                 address};
}

std::optional<Pointee> OfHost(CUdeviceptr address) {
  const Current current = CurrentContext(false);
  MutexLock lock(HostMutex());
  const auto it = Containing(HostBlocks(), address, 0, HostBytes);
  if (it == HostBlocks().end()) return std::nullopt;
  const HostBlock& block = it->second;
  const CUcontext context = current.error == CUDA_SUCCESS ? current.context->handle : nullptr;
  return Pointee{address,
                 it->first,
                 block.bytes,
                 block.device,
                 context,
                 nullptr,
                 block.id,
                 block.id,
                 true,
                 IsReached(block),
                 false,
                 false,
                 OfKernels(*it, address),
                 block.kind == HostBlock::Kind::kOfKernels ? block.other + (address - it->first) : address};
}

std::optional<Pointee> Find(CUdeviceptr address) {
  if (const auto host = OfHost(address)) return host;
  if (const auto piece = FindMapped(address))
    return Pointee{address,          piece->address, piece->bytes, piece->device, nullptr, nullptr, piece->id,
                   piece->memory_id, false,          true,         false,         false,   address, address};
  for (const auto& device : Driver::Get().devices())
    if (const auto found = OfDevice(*device, address)) return found;
  return std::nullopt;
}

using Answer = std::optional<uint64_t>;  // none: the pointer has none

struct Attribute {
  int attribute;
  size_t bytes;
  Answer (*of)(const Pointee&);
  int64_t foreign = 0;  // what cuPointerGetAttributes says of memory that nobody made here
};
template <uint64_t kValue>
Answer Always(const Pointee&) {
  return kValue;
}
Answer Base(const Pointee& p) { return p.base; }
Answer Bytes(const Pointee& p) { return p.bytes; }

constexpr Attribute kAttributes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, 8, [](const Pointee& p) -> Answer { return reinterpret_cast<uint64_t>(p.context); }},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4,
     [](const Pointee& p) -> Answer { return p.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; }},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8,
     [](const Pointee& p) -> Answer { return p.reached ? Answer(p.of_kernels) : std::nullopt; }},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, 8,
     [](const Pointee& p) -> Answer { return p.host || p.managed ? Answer(p.of_host) : std::nullopt; }},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4, [](const Pointee& p) -> Answer { return p.sync_copies; }},
    {CU_POINTER_ATTRIBUTE_BUFFER_ID, 8, [](const Pointee& p) -> Answer { return p.id; }},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, 4, [](const Pointee& p) -> Answer { return p.managed; }},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4,
     [](const Pointee& p) -> Answer { return static_cast<uint64_t>(p.device->ordinal); }, -2},
    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4, Always<0>},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8, Base},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8, Bytes},
    {CU_POINTER_ATTRIBUTE_MAPPED, 4, Always<1>},
    {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8, Always<0>},
    {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4, Always<0>},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4,
     [](const Pointee& p) -> Answer {
       return p.reached ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
     }},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8,
     [](const Pointee& p) -> Answer { return reinterpret_cast<uint64_t>(p.pool); }},
    {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 8, Bytes},
    {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 8, Base},
    {CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 8, [](const Pointee& p) -> Answer { return p.memory_id; }},
    {CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 4, Always<0>},
};

const Attribute* Row(int attribute) {
  const auto it = std::ranges::find(kAttributes, attribute, &Attribute::attribute);
  return it == std::end(kAttributes) ? nullptr : it;
}

// Of one that has no row.
CUresult NoRow(int attribute) {
  const bool known =
      attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
  return known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

// Little endian, as all that CUDA runs on.
void Put(void* data, const Attribute& row, uint64_t value) { memcpy(data, &value, row.bytes); }

CUresult Get(void* data, int attribute, CUdeviceptr address) {
  const auto pointee = Find(address);
  if (!pointee) return CUDA_ERROR_INVALID_VALUE;
  const Attribute* const row = Row(attribute);
  if (row == nullptr) return NoRow(attribute);
  const Answer answer = row->of(*pointee);
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  Put(data, *row, *answer);
  return CUDA_SUCCESS;
}

// Of device memory. What else there is, copies and fills that are not asynchronous have waited for in any case.
CUresult SetSyncCopies(bool sync, CUdeviceptr address) {
  for (const auto& device : Driver::Get().devices()) {
    MutexLock lock(device->mutex);
    const auto it = Containing(device->allocations, address, 0, AllocationBytes);
    if (it == device->allocations.end()) continue;
    it->second.sync_copies = sync;
    return CUDA_SUCCESS;
  }
  return Find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuPointerGetAttribute)(void* data, int attribute, CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return data == nullptr ? CUDA_ERROR_INVALID_VALUE : Get(data, attribute, address);
}

CU_API(cuPointerGetAttributes)(unsigned count, int* attributes, void** data, CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Attribute* const row = Row(attributes[i]);
    if (row == nullptr) return NoRow(attributes[i]);
    if (Get(data[i], attributes[i], address) != CUDA_SUCCESS) Put(data[i], *row, static_cast<uint64_t>(row->foreign));
  }
  return CUDA_SUCCESS;
}

CU_API(cuPointerSetAttribute)(const void* value, int attribute, CUdeviceptr address) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  return SetSyncCopies(*static_cast<const unsigned*>(value) != 0, address);
}
