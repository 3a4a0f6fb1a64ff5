// SPDX-License-Identifier: Apache-2.0
// What a node was told to do, read back. A node of a capture tells what was captured.
#include "guest-driver-shim/libcuda/graph/node_params.h"

#include <cstring>

#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {
namespace {

// Hands what a node of that type keeps to `use`.
template <class Kept, class Use>
CUresult Read(CUgraphNode handle, int type, const void* out, const Use& use) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto node = Nodes().Find(handle);
  const auto graph = node != nullptr ? node->graph.lock() : nullptr;
  if (graph == nullptr || node->type != type || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  const auto* const kept = std::get_if<Kept>(&node->work.params);
  if (kept == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  use(*kept);
  return CUDA_SUCCESS;
}
template <class Kept>
CUresult Copy(CUgraphNode node, int type, Kept* out) {
  return Read<Kept>(node, type, out, [&](const Kept& kept) { *out = kept; });
}

using Kernel = std::shared_ptr<const KernelParams>;
using Alloc = std::shared_ptr<const AllocParams>;

}  // namespace

CUresult AttributesOf(CUgraphNode node, LaunchAttributes* out) {
  return Read<Kernel>(node, CU_GRAPH_NODE_TYPE_KERNEL, out, [&](const Kernel& kernel) { *out = kernel->attributes; });
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

// The older form has no place for a CUkernel, which serves as a function as well.
CU_API(cuGraphKernelNodeGetParams)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_st* out) {
  return Read<Kernel>(node, CU_GRAPH_NODE_TYPE_KERNEL, out, [&](const Kernel& kernel) {
    memcpy(out, &kernel->told, sizeof *out);
    if (out->func == nullptr) out->func = reinterpret_cast<CUfunction>(kernel->told.kern);
  });
}
CU_API(cuGraphKernelNodeGetParams_v2)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2_st* out) {
  return Read<Kernel>(node, CU_GRAPH_NODE_TYPE_KERNEL, out, [&](const Kernel& kernel) { *out = kernel->told; });
}
CU_API(cuGraphMemcpyNodeGetParams)(CUgraphNode node, CUDA_MEMCPY3D_st* out) {
  return Copy(node, CU_GRAPH_NODE_TYPE_MEMCPY, out);
}
CU_API(cuGraphMemsetNodeGetParams)(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_st* out) {
  return Copy(node, CU_GRAPH_NODE_TYPE_MEMSET, out);
}
CU_API(cuGraphHostNodeGetParams)(CUgraphNode node, CUDA_HOST_NODE_PARAMS_st* out) {
  return Copy(node, CU_GRAPH_NODE_TYPE_HOST, out);
}
CU_API(cuGraphEventRecordNodeGetEvent)(CUgraphNode node, CUevent* out) {
  return Copy(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}
CU_API(cuGraphEventWaitNodeGetEvent)(CUgraphNode node, CUevent* out) {
  return Copy(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}
CU_API(cuGraphMemAllocNodeGetParams)(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1_st* out) {
  return Read<Alloc>(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, out, [&](const Alloc& alloc) { *out = alloc->told; });
}
CU_API(cuGraphMemFreeNodeGetParams)(CUgraphNode node, CUdeviceptr* out) {
  return Read<FreeParams>(node, CU_GRAPH_NODE_TYPE_MEM_FREE, out, [&](const FreeParams& kept) { *out = kept.address; });
}
