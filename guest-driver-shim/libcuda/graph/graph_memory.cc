// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate: each allocation node has its block from when the node is made until no graph and no
// executable has the node any more, so that its address is the same in every launch. Freeing is bookkeeping only.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {
namespace {

struct Account {
  std::atomic<uint64_t> used{0}, high{0};
};
Account account;

struct GraphBlock {
  Device* device = nullptr;
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  uint64_t epoch = 0;

  GraphBlock() = default;
  GraphBlock(const GraphBlock&) = delete;
  ~GraphBlock() {
    if (address == 0) return;
    account.used -= bytes;
    if (epoch != device->epoch.load()) return;
    {
      MutexLock lock(device->mutex);
      const auto it = device->allocations.find(address);
      if (it == device->allocations.end()) return;
      // What nobody has freed outlives its graph and is the program's.
      it->second.of_graph = false;
      if (!it->second.ended && !it->second.free_node) return;
      device->allocations.erase(it);
    }
    Command command;
    command.op = VGPU_OP_MEM_FREE;
    command.args[0] = address;
    device->channel->Post(command);
  }
};

CUresult Make(const Current& current, size_t bytes, std::shared_ptr<GraphBlock>* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  auto block = std::make_shared<GraphBlock>();
  CUdeviceptr address = 0;
  if (const CUresult error = AllocDevice(current, &address, bytes)) return error;
  block->device = current.device;
  block->address = address;
  block->bytes = bytes;
  block->epoch = current.device->epoch.load();
  account.used += bytes;
  account.high = std::max(account.high.load(), account.used.load());
  {
    MutexLock lock(current.device->mutex);
    current.device->allocations[address].of_graph = true;
  }
  *out = std::move(block);
  return CUDA_SUCCESS;
}

void SetEnded(Device* device, CUdeviceptr address, bool ended) {
  MutexLock lock(device->mutex);
  const auto it = device->allocations.find(address);
  if (it != device->allocations.end()) it->second.ended = ended;
}

// The peers that are to see the memory: there is none but the device itself.
CUresult CheckAccess(const Current& current, const CUDA_MEM_ALLOC_NODE_PARAMS_v1_st& wanted) {
  if (wanted.accessDescCount > Driver::Get().devices().size()) return CUDA_ERROR_INVALID_VALUE;
  if (wanted.accessDescCount != 0 && wanted.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < wanted.accessDescCount; ++i) {
    const CUmemLocation_st& location = wanted.accessDescs[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id != current.device->ordinal)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// A block has one free node at most.
CUresult TakeForFreeNode(const Current& current, CUdeviceptr address) {
  MutexLock lock(current.device->mutex);
  const auto it = current.device->allocations.find(address);
  if (it == current.device->allocations.end() || !it->second.of_graph) return CUDA_ERROR_INVALID_VALUE;
  return std::exchange(it->second.free_node, true) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// CUgraphMem_attribute: what graphs use is what they have reserved.
CUresult Attribute(CUdevice ordinal, int attribute, void* value, bool set) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (Driver::Get().device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  const bool known =
      high || attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
  if (value == nullptr || !known || (set && !high)) return CUDA_ERROR_INVALID_VALUE;
  if (set) {
    account.high = account.used.load();
    return CUDA_SUCCESS;
  }
  const uint64_t bytes = high ? account.high.load() : account.used.load();
  memcpy(value, &bytes, sizeof bytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult AllocWork(const Current& current, CUDA_MEM_ALLOC_NODE_PARAMS_v1_st* wanted, NodeWork* out) {
  const CUmemPoolProps_st& pool = wanted->poolProps;
  if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (pool.handleTypes != 0 || pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      pool.location.id != current.device->ordinal) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (const CUresult error = CheckAccess(current, *wanted)) return error;
  std::shared_ptr<GraphBlock> block;
  if (const CUresult error = Make(current, wanted->bytesize, &block)) return error;
  wanted->dptr = block->address;
  auto params = std::make_shared<AllocParams>();
  params->told = *wanted;
  params->access.assign(wanted->accessDescs, wanted->accessDescs + wanted->accessDescCount);
  params->told.accessDescs = params->access.empty() ? nullptr : params->access.data();
  out->params = std::move(params);
  out->submit = [block = std::move(block)](const Current& at, uint32_t) {
    SetEnded(at.device, block->address, false);
    return CUDA_SUCCESS;
  };
  return CUDA_SUCCESS;
}

CUresult FreeWork(const Current& current, CUdeviceptr address, NodeWork* out) {
  if (const CUresult error = TakeForFreeNode(current, address)) return error;
  out->params = FreeParams{address};
  out->submit = [address](const Current& at, uint32_t) {
    SetEnded(at.device, address, true);
    return CUDA_SUCCESS;
  };
  return CUDA_SUCCESS;
}

CUresult CaptureAlloc(const Current& current, const InCapture& capture, CUdeviceptr* out, size_t bytes) {
  if (capture.error() != CUDA_SUCCESS) return capture.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, current.device->ordinal};
  wanted.bytesize = bytes;
  NodeWork work;
  if (const CUresult error = AllocWork(current, &wanted, &work)) return error;
  *out = wanted.dptr;
  return capture.Add(current, CU_GRAPH_NODE_TYPE_MEM_ALLOC, std::move(work));
}

CUresult CaptureFree(const Current& current, const InCapture& capture, CUdeviceptr address) {
  if (capture.error() != CUDA_SUCCESS) return capture.error();
  NodeWork work;
  if (const CUresult error = FreeWork(current, address, &work)) return error;
  return capture.Add(current, CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(work));
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuDeviceGetGraphMemAttribute)(CUdevice device, int attribute, void* value) {
  return Attribute(device, attribute, value, false);
}
CU_API(cuDeviceSetGraphMemAttribute)(CUdevice device, int attribute, void* value) {
  return Attribute(device, attribute, value, true);
}
CU_API(cuDeviceGraphMemTrim)(CUdevice ordinal) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Driver::Get().device(ordinal) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
