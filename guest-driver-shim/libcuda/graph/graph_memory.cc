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
      std::lock_guard lock(device->mutex);
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
    std::lock_guard lock(current.device->mutex);
    current.device->allocations[address].of_graph = true;
  }
  *out = std::move(block);
  return CUDA_SUCCESS;
}

void SetEnded(Device* device, CUdeviceptr address, bool ended) {
  std::lock_guard lock(device->mutex);
  const auto it = device->allocations.find(address);
  if (it != device->allocations.end()) it->second.ended = ended;
}

// What the nodes do in a launch.
GraphWork Allocating(std::shared_ptr<GraphBlock> block) {
  return [block = std::move(block)](const Current& at, uint32_t) {
    SetEnded(at.device, block->address, false);
    return CUDA_SUCCESS;
  };
}
GraphWork Freeing(CUdeviceptr address) {
  return [address](const Current& at, uint32_t) {
    SetEnded(at.device, address, true);
    return CUDA_SUCCESS;
  };
}

// A block has one free node at most.
CUresult TakeForFreeNode(const Current& current, CUdeviceptr address) {
  std::lock_guard lock(current.device->mutex);
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

CUresult CaptureAlloc(const Current& current, const InCapture& capture, CUdeviceptr* out, size_t bytes) {
  if (capture.error() != CUDA_SUCCESS) return capture.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<GraphBlock> block;
  if (const CUresult error = Make(current, bytes, &block)) return error;
  *out = block->address;
  return capture.Add(current, CU_GRAPH_NODE_TYPE_MEM_ALLOC, Allocating(std::move(block)));
}

CUresult CaptureFree(const Current& current, const InCapture& capture, CUdeviceptr address) {
  if (capture.error() != CUDA_SUCCESS) return capture.error();
  if (const CUresult error = TakeForFreeNode(current, address)) return error;
  return capture.Add(current, CU_GRAPH_NODE_TYPE_MEM_FREE, Freeing(address));
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphAddMemAllocNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS_v1_st* wanted) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (wanted == nullptr || wanted->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (wanted->poolProps.handleTypes != 0 || wanted->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      wanted->poolProps.location.id != current.device->ordinal) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::shared_ptr<GraphBlock> block;
  if (const CUresult error = Make(current, wanted->bytesize, &block)) return error;
  wanted->dptr = block->address;
  return AddGraphNode(out, graph, after, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC, current.device->epoch.load(),
                      Allocating(std::move(block)));
}

CU_API(cuGraphAddMemFreeNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUdeviceptr address) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (const CUresult error = TakeForFreeNode(current, address)) return error;
  return AddGraphNode(out, graph, after, count, CU_GRAPH_NODE_TYPE_MEM_FREE, current.device->epoch.load(),
                      Freeing(address));
}

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
