// SPDX-License-Identifier: Apache-2.0
// The calls for nodes of one type each: their parameters as CUgraphNodeParams.
#include <cstring>

#include "guest-driver-shim/libcuda/api/graph_nodes.h"

namespace {

using namespace vgpud::cuda;

using Params = CUgraphNodeParams_st;

struct EventNode {
  CUevent event;
  bool records;
};

void Fill(Params& to, const CUDA_KERNEL_NODE_PARAMS_st& from) {
  to.type = CU_GRAPH_NODE_TYPE_KERNEL;
  memcpy(&to.kernel, &from, sizeof from);
}
void Fill(Params& to, const CUDA_KERNEL_NODE_PARAMS_v2_st& from) {
  to.type = CU_GRAPH_NODE_TYPE_KERNEL;
  memcpy(&to.kernel, &from, sizeof from);
}
void Fill(Params& to, const CUDA_MEMCPY3D_st& from) {
  to.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  to.memcpy.copyParams = from;
}
void Fill(Params& to, const CUDA_MEMSET_NODE_PARAMS_st& from) {
  to.type = CU_GRAPH_NODE_TYPE_MEMSET;
  memcpy(&to.memset, &from, sizeof from);
}
void Fill(Params& to, const CUDA_HOST_NODE_PARAMS_st& from) {
  to.type = CU_GRAPH_NODE_TYPE_HOST;
  to.host = {from.fn, from.userData};
}
void Fill(Params& to, const CUgraph& from) {
  to.type = CU_GRAPH_NODE_TYPE_GRAPH;
  to.graph.graph = from;
}
void Fill(Params& to, const EventNode& from) {
  to.type = from.records ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  to.eventRecord.event = from.event;
}
void Fill(Params& to, const CUDA_MEM_ALLOC_NODE_PARAMS_v1_st& from) {
  to.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  memcpy(&to.alloc, &from, sizeof from);
}
void Fill(Params& to, const CUdeviceptr& from) {
  to.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  to.free.dptr = from;
}

// Hands the parameters to `use`; none, when the program gave none.
template <class What, class Use>
CUresult As(const What* what, const Use& use) {
  Params params{};
  if (what != nullptr) Fill(params, *what);
  return use(what != nullptr ? &params : nullptr);
}
template <class What>
CUresult Add(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const What* what) {
  return As(what, [&](Params* params) { return AddNode(out, graph, after, count, params); });
}
template <class What>
CUresult Set(CUgraphNode node, const What* what) {
  return As(what, [&](Params* params) { return SetNode(node, params); });
}
template <class What>
CUresult SetIn(CUgraphExec executable, CUgraphNode node, const What* what) {
  return As(what, [&](Params* params) { return SetNodeIn(executable, node, params); });
}

}  // namespace

CU_API(cuGraphAddKernelNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_KERNEL_NODE_PARAMS_st* kernel) {
  return Add(out, graph, after, count, kernel);
}
CU_API(cuGraphAddKernelNode_v2)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v2_st* kernel) {
  return Add(out, graph, after, count, kernel);
}
CU_API(cuGraphAddMemcpyNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMCPY3D_st* copy, CUcontext) {
  return Add(out, graph, after, count, copy);
}
CU_API(cuGraphAddMemsetNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMSET_NODE_PARAMS_st* fill,
 CUcontext) {
  return Add(out, graph, after, count, fill);
}
CU_API(cuGraphAddHostNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_HOST_NODE_PARAMS_st* host) {
  return Add(out, graph, after, count, host);
}
CU_API(cuGraphAddChildGraphNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child) {
  return Add(out, graph, after, count, &child);
}
CU_API(cuGraphAddEventRecordNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event) {
  const EventNode what{event, true};
  return Add(out, graph, after, count, &what);
}
CU_API(cuGraphAddEventWaitNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event) {
  const EventNode what{event, false};
  return Add(out, graph, after, count, &what);
}
CU_API(cuGraphAddMemAllocNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS_v1_st* wanted) {
  return As(wanted, [&](Params* params) {
    const CUresult error = AddNode(out, graph, after, count, params);
    if (error == CUDA_SUCCESS) wanted->dptr = params->alloc.dptr;
    return error;
  });
}
CU_API(cuGraphAddMemFreeNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUdeviceptr address) {
  return Add(out, graph, after, count, &address);
}

CU_API(cuGraphKernelNodeSetParams)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_st* kernel) {
  return Set(node, kernel);
}
CU_API(cuGraphKernelNodeSetParams_v2)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2_st* kernel) {
  return Set(node, kernel);
}
CU_API(cuGraphMemcpyNodeSetParams)(CUgraphNode node, const CUDA_MEMCPY3D_st* copy) { return Set(node, copy); }
CU_API(cuGraphMemsetNodeSetParams)(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_st* fill) { return Set(node, fill); }
CU_API(cuGraphHostNodeSetParams)(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_st* host) { return Set(node, host); }
CU_API(cuGraphEventRecordNodeSetEvent)(CUgraphNode node, CUevent event) {
  const EventNode what{event, true};
  return Set(node, &what);
}
CU_API(cuGraphEventWaitNodeSetEvent)(CUgraphNode node, CUevent event) {
  const EventNode what{event, false};
  return Set(node, &what);
}

CU_API(cuGraphExecKernelNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_st* kernel) {
  return SetIn(executable, node, kernel);
}
CU_API(cuGraphExecKernelNodeSetParams_v2)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2_st* kernel) {
  return SetIn(executable, node, kernel);
}
CU_API(cuGraphExecMemcpyNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D_st* copy, CUcontext) {
  return SetIn(executable, node, copy);
}
CU_API(cuGraphExecMemsetNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_st* fill, CUcontext) {
  return SetIn(executable, node, fill);
}
CU_API(cuGraphExecHostNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_st* host) {
  return SetIn(executable, node, host);
}
CU_API(cuGraphExecChildGraphNodeSetParams)(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return SetIn(executable, node, &child);
}
CU_API(cuGraphExecEventRecordNodeSetEvent)(CUgraphExec executable, CUgraphNode node, CUevent event) {
  const EventNode what{event, true};
  return SetIn(executable, node, &what);
}
CU_API(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec executable, CUgraphNode node, CUevent event) {
  const EventNode what{event, false};
  return SetIn(executable, node, &what);
}
