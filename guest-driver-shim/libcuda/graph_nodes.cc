// SPDX-License-Identifier: Apache-2.0
// Nodes by what they do: added to a graph, given other parameters there or in an executable graph.
#include "guest-driver-shim/libcuda/copy.h"
#include "guest-driver-shim/libcuda/event.h"
#include "guest-driver-shim/libcuda/graph/graph.h"
#include "guest-driver-shim/libcuda/host_function.h"
#include "guest-driver-shim/libcuda/submit.h"

namespace {

using namespace vgpud::cuda;

CUresult WorkOf(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& kernel, GraphWork* out) {
  Command command;
  std::vector<std::byte> payload;
  if (const CUresult error = MakeLaunch(current, kernel, &command, &payload)) return error;
  *out = [command, payload](const Current& at, uint32_t stream) {
    Command mine = command;
    mine.stream = stream;
    return Enqueue(at, mine, payload);
  };
  return CUDA_SUCCESS;
}
CUresult WorkOf(const Current&, const CUDA_MEMCPY3D_st& copy, GraphWork* out) {
  *out = [copy](const Current& at, uint32_t stream) {
    return Copy3D({at, stream, CUDA_SUCCESS}, copy, Finish::kLater);
  };
  return CUDA_SUCCESS;
}
CUresult WorkOf(const Current&, const CUDA_MEMSET_NODE_PARAMS_st& fill, GraphWork* out) {
  *out = [fill](const Current& at, uint32_t stream) { return FillRows(at, stream, fill); };
  return CUDA_SUCCESS;
}
CUresult WorkOf(const Current&, const CUDA_HOST_NODE_PARAMS_st& host, GraphWork* out) {
  if (host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = [host](const Current& at, uint32_t stream) {
    return EnqueueHostFunction(at, stream, [host](CUresult status) {
      if (status == CUDA_SUCCESS) host.fn(host.userData);
    });
  };
  return CUDA_SUCCESS;
}
struct EventWork {
  CUevent event;
  bool records;
};
CUresult WorkOf(const Current& current, const EventWork& what, GraphWork* out) {
  return WorkOfEvent(current, what.event, what.records, out);
}
CUresult WorkOf(const Current&, const CUgraph& child, GraphWork* out) { return WorkOfGraph(child, out); }

// Makes the work that `what` describes and hands it to `use` with the epoch of the device.
template <class What, class Use>
CUresult With(const What* what, const Use& use) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphWork work;
  if (const CUresult error = WorkOf(current, *what, &work)) return error;
  return use(current.device->epoch.load(), std::move(work));
}
template <class What>
CUresult Add(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, int type, const What* what) {
  return With(what, [&](uint64_t epoch, GraphWork work) {
    return AddGraphNode(out, graph, after, count, type, epoch, std::move(work));
  });
}
template <class What>
CUresult Set(CUgraphNode node, int type, const What* what) {
  return With(what, [&](uint64_t epoch, GraphWork work) { return SetGraphNode(node, type, epoch, std::move(work)); });
}
template <class What>
CUresult SetIn(CUgraphExec executable, CUgraphNode node, int type, const What* what) {
  return With(what, [&](uint64_t epoch, GraphWork work) {
    return SetExecutableNode(executable, node, type, epoch, std::move(work));
  });
}

}  // namespace

CU_API(cuGraphAddKernelNode_v2)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v2_st* kernel) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_KERNEL, kernel);
}
CU_API(cuGraphAddMemcpyNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMCPY3D_st* copy, CUcontext) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_MEMCPY, copy);
}
CU_API(cuGraphAddMemsetNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMSET_NODE_PARAMS_st* fill,
 CUcontext) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_MEMSET, fill);
}
CU_API(cuGraphAddHostNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_HOST_NODE_PARAMS_st* host) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_HOST, host);
}
CU_API(cuGraphAddChildGraphNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_GRAPH, &child);
}
CU_API(cuGraphAddEventRecordNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event) {
  const EventWork what{event, true};
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &what);
}
CU_API(cuGraphAddEventWaitNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event) {
  const EventWork what{event, false};
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &what);
}

CU_API(cuGraphKernelNodeSetParams_v2)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2_st* kernel) {
  return Set(node, CU_GRAPH_NODE_TYPE_KERNEL, kernel);
}
CU_API(cuGraphMemcpyNodeSetParams)(CUgraphNode node, const CUDA_MEMCPY3D_st* copy) {
  return Set(node, CU_GRAPH_NODE_TYPE_MEMCPY, copy);
}
CU_API(cuGraphMemsetNodeSetParams)(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_st* fill) {
  return Set(node, CU_GRAPH_NODE_TYPE_MEMSET, fill);
}
CU_API(cuGraphHostNodeSetParams)(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_st* host) {
  return Set(node, CU_GRAPH_NODE_TYPE_HOST, host);
}
CU_API(cuGraphEventRecordNodeSetEvent)(CUgraphNode node, CUevent event) {
  const EventWork what{event, true};
  return Set(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &what);
}
CU_API(cuGraphEventWaitNodeSetEvent)(CUgraphNode node, CUevent event) {
  const EventWork what{event, false};
  return Set(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &what);
}

CU_API(cuGraphExecKernelNodeSetParams_v2)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2_st* kernel) {
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_KERNEL, kernel);
}
CU_API(cuGraphExecMemcpyNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D_st* copy, CUcontext) {
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_MEMCPY, copy);
}
CU_API(cuGraphExecMemsetNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_st* fill, CUcontext) {
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_MEMSET, fill);
}
CU_API(cuGraphExecHostNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_st* host) {
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_HOST, host);
}
CU_API(cuGraphExecChildGraphNodeSetParams)(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_GRAPH, &child);
}
CU_API(cuGraphExecEventRecordNodeSetEvent)(CUgraphExec executable, CUgraphNode node, CUevent event) {
  const EventWork what{event, true};
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &what);
}
CU_API(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec executable, CUgraphNode node, CUevent event) {
  const EventWork what{event, false};
  return SetIn(executable, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &what);
}
