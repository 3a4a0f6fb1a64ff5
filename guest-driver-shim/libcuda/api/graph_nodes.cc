// SPDX-License-Identifier: Apache-2.0
// What a node of each type does, made of its parameters.
#include "guest-driver-shim/libcuda/api/graph_nodes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "guest-driver-shim/libcuda/api/copy.h"
#include "guest-driver-shim/libcuda/api/event.h"
#include "guest-driver-shim/libcuda/graph/graph_parts.h"
#include "guest-driver-shim/libcuda/launch/conditional_node.h"
#include "guest-driver-shim/libcuda/launch/host_function.h"
#include "guest-driver-shim/libcuda/launch/launch.h"

namespace vgpud::cuda {
namespace {

using Params = CUgraphNodeParams_st;

// One node that is made.
struct Making {
  const Current& current;
  Params& params;
  CUgraph graph;           // that gets the node, nullptr if it is there already
  const NodeWork* before;  // see MakeNodeWork
  NodeWork* out;
};

CUresult CheckContext(CUcontext context) {
  const bool fine = context == nullptr || Driver::Get().contexts().Find(context) != nullptr;
  return fine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// The attributes of a node stay when it gets another kernel.
CUresult Kernel(const Making& m) {
  CUDA_KERNEL_NODE_PARAMS_v2_st told;
  static_assert(sizeof told == sizeof m.params.kernel);
  memcpy(&told, &m.params.kernel, sizeof told);
  LaunchAttributes attributes;
  if (m.before != nullptr)
    if (const auto* const old = std::get_if<std::shared_ptr<const KernelParams>>(&m.before->params))
      attributes = (*old)->attributes;
  return KernelWork(m.current, told, std::move(attributes), m.out);
}
CUresult Memcpy(const Making& m) {
  const CUDA_MEMCPY_NODE_PARAMS_st& copy = m.params.memcpy;
  if (copy.flags != 0 || copy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
  *m.out = CopyWork(copy.copyParams);
  return CheckContext(copy.copyCtx);
}
CUresult Memset(const Making& m) {
  const CUDA_MEMSET_NODE_PARAMS_v2_st& fill = m.params.memset;
  *m.out = FillWork({fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height});
  return CheckContext(fill.ctx);
}
CUresult Host(const Making& m) {
  if (m.params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *m.out = HostWork({m.params.host.fn, m.params.host.userData});
  return CUDA_SUCCESS;
}
CUresult Child(const Making& m) {
  const auto& [graph, ownership] = m.params.graph;
  if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return EmbedGraph(graph, nullptr, m.out);
  if (ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) return CUDA_ERROR_INVALID_VALUE;
  return m.graph != nullptr ? EmbedGraph(graph, m.graph, m.out) : CUDA_ERROR_NOT_SUPPORTED;
}
CUresult Empty(const Making&) { return CUDA_SUCCESS; }
CUresult WaitEvent(const Making& m) { return EventWork(m.current, m.params.eventWait.event, false, m.out); }
CUresult RecordEvent(const Making& m) { return EventWork(m.current, m.params.eventRecord.event, true, m.out); }
CUresult MemAlloc(const Making& m) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st wanted;
  static_assert(sizeof wanted == sizeof m.params.alloc);
  memcpy(&wanted, &m.params.alloc, sizeof wanted);
  const CUresult error = AllocWork(m.current, &wanted, m.out);
  m.params.alloc.dptr = wanted.dptr;
  return error;
}
CUresult MemFree(const Making& m) { return FreeWork(m.current, m.params.free.dptr, m.out); }

CUresult Conditional(const Making& m) {
  if (const CUresult error = CheckContext(m.params.conditional.ctx)) return error;
  return ConditionalWork(m.current, &m.params.conditional, m.out);
}

struct Row {
  int type;
  size_t bytes;  // of the parameters that mean something
  CUresult (*make)(const Making&);
  bool can_be_set = true;
};
constexpr Row kRows[] = {
    {CU_GRAPH_NODE_TYPE_KERNEL, sizeof(Params::kernel), Kernel},
    {CU_GRAPH_NODE_TYPE_MEMCPY, sizeof(Params::memcpy), Memcpy},
    {CU_GRAPH_NODE_TYPE_MEMSET, sizeof(Params::memset), Memset},
    {CU_GRAPH_NODE_TYPE_HOST, sizeof(Params::host), Host},
    {CU_GRAPH_NODE_TYPE_GRAPH, sizeof(Params::graph), Child},
    {CU_GRAPH_NODE_TYPE_EMPTY, 0, Empty, false},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, sizeof(Params::eventWait), WaitEvent},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, sizeof(Params::eventRecord), RecordEvent},
    {CU_GRAPH_NODE_TYPE_MEM_ALLOC, sizeof(Params::alloc), MemAlloc, false},
    {CU_GRAPH_NODE_TYPE_MEM_FREE, sizeof(Params::free), MemFree, false},
    {CU_GRAPH_NODE_TYPE_CONDITIONAL, sizeof(Params::conditional), Conditional, false},
};

// Reserved bytes, and those behind what the type uses.
bool RestIsZero(const Params& params, size_t used) {
  constexpr auto kIsZero = [](auto byte) { return byte == 0; };
  const auto* const rest = reinterpret_cast<const unsigned char*>(&params.reserved1);
  return std::all_of(std::begin(params.reserved0), std::end(params.reserved0), kIsZero) &&
         std::all_of(rest + used, rest + sizeof params.reserved1, kIsZero) && params.reserved2 == 0;
}

CUresult FindRow(const Params* params, const Row** row) {
  if (params == nullptr || params->type < 0 || params->type > CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return CUDA_ERROR_INVALID_VALUE;
  *row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.type == params->type; });
  if (*row == std::end(kRows)) return CUDA_ERROR_NOT_SUPPORTED;
  return RestIsZero(*params, (*row)->bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Finds out how such a node is made and hands that to `use`.
template <class Use>
CUresult With(Params* params, CUgraph graph, const Use& use) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const Row* row;
  if (const CUresult error = FindRow(params, &row)) return error;
  return use(*row, [&](const NodeWork* before, NodeWork* out) {
    const CUresult error = row->make({current, *params, graph, before, out});
    out->epoch = current.device->epoch.load();
    return error;
  });
}

template <class Use>
CUresult WithSettable(const Params* params, const Use& use) {
  Params mine{};
  if (params != nullptr) mine = *params;
  return With(params != nullptr ? &mine : nullptr, nullptr, [&](const Row& row, const MakeNodeWork& make) {
    return row.can_be_set ? use(make) : CUDA_ERROR_NOT_SUPPORTED;
  });
}

}  // namespace

CUresult AddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, Params* params) {
  return With(params, graph, [&](const Row& row, const MakeNodeWork& make) {
    return AddGraphNode(out, graph, after, count, row.type, make);
  });
}
CUresult SetNode(CUgraphNode node, const Params* params) {
  return WithSettable(params, [&](const MakeNodeWork& make) { return SetGraphNode(node, params->type, make); });
}
CUresult SetNodeIn(CUgraphExec executable, CUgraphNode node, const Params* params) {
  return WithSettable(
      params, [&](const MakeNodeWork& make) { return SetExecutableNode(executable, node, params->type, make); });
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphAddNode)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUgraphNodeParams_st* params) {
  return AddNode(out, graph, after, count, params);
}
CU_API(cuGraphAddNode_v2)
(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData_st* edges, size_t count,
 CUgraphNodeParams_st* params) {
  if (edges != nullptr && !std::all_of(edges, edges + count, IsPlain)) return CUDA_ERROR_NOT_SUPPORTED;
  return AddNode(out, graph, after, count, params);
}
CU_API(cuGraphNodeSetParams)(CUgraphNode node, CUgraphNodeParams_st* params) { return SetNode(node, params); }
CU_API(cuGraphExecNodeSetParams)(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams_st* params) {
  return SetNodeIn(executable, node, params);
}
