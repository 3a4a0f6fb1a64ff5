// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph/graph.h"

#include <algorithm>
#include <utility>

#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {
namespace {

CUresult ListNodes(CUgraph handle, CUgraphNode* out, size_t* count, bool roots) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  std::vector<CUgraphNode> found;
  for (const auto& node : graph->nodes) {
    if (!roots || node->after.empty()) found.push_back(node->handle);
  }
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : nullptr;
  }
  *count = out == nullptr ? found.size() : std::min(*count, found.size());
  return CUDA_SUCCESS;
}

}  // namespace

HandleTable<CUgraph, Graph>& Graphs() {
  static auto* const table = new HandleTable<CUgraph, Graph>(0x6a);
  return *table;
}
HandleTable<CUgraphNode, GraphNode>& Nodes() {
  static auto* const table = new HandleTable<CUgraphNode, GraphNode>(0x6b);
  return *table;
}

std::shared_ptr<Graph> NewGraph() {
  auto graph = std::make_shared<Graph>();
  graph->handle = Graphs().Add(graph);
  return graph;
}

CUresult DropGraph(CUgraph handle) {
  const auto graph = Graphs().Remove(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  for (const auto& node : graph->nodes) Nodes().Remove(node->handle);
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphNode> AppendNode(const std::shared_ptr<Graph>& graph, std::shared_ptr<GraphNode> node) {
  node->graph = graph;
  node->handle = Nodes().Add(node);
  MutexLock lock(graph->mutex);
  graph->nodes.push_back(node);
  return node;
}

CUresult AddGraphNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* after, size_t count, int type,
                      const MakeNodeWork& make) {
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr || (count != 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_shared<GraphNode>();
  node->type = type;
  if (graph->embedded && IsMemoryNode(*node)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const auto earlier = Nodes().Find(after[i]);
    if (earlier == nullptr || earlier->graph.lock() != graph) return CUDA_ERROR_INVALID_VALUE;
    node->after.insert(after[i]);
  }
  if (const CUresult error = make(nullptr, &node->work)) return error;
  *out = AppendNode(graph, std::move(node))->handle;
  return CUDA_SUCCESS;
}

CUresult SetGraphNode(CUgraphNode handle, int type, const MakeNodeWork& make) {
  const auto node = Nodes().Find(handle);
  const auto graph = node != nullptr ? node->graph.lock() : nullptr;
  if (graph == nullptr || node->type != type) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work;  // in the end the old one, which goes without the lock
  {
    MutexLock lock(graph->mutex);
    work = node->work;
  }
  NodeWork fresh;
  if (const CUresult error = make(&work, &fresh)) return error;
  MutexLock lock(graph->mutex);
  node->work = std::move(fresh);
  return CUDA_SUCCESS;
}

bool IsMemoryNode(const GraphNode& node) {
  return node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

bool IsPlain(const CUgraphEdgeData_st& edge) {
  const auto* const reserved = edge.reserved;
  return edge.from_port == 0 && edge.to_port == 0 && edge.type == 0 &&
         std::all_of(reserved, reserved + sizeof edge.reserved, [](auto byte) { return byte == 0; });
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphCreate)(CUgraph* out, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = NewGraph()->handle;
  return CUDA_SUCCESS;
}

CU_API(cuGraphDestroy)(CUgraph handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  // A graph that is being captured belongs to its capture, one inside of a node to the node.
  if (graph == nullptr || graph->capturing || graph->embedded) return CUDA_ERROR_INVALID_VALUE;
  return DropGraph(handle);
}

CU_API(cuGraphGetNodes)(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return ListNodes(graph, nodes, count, false);
}
CU_API(cuGraphGetRootNodes)(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return ListNodes(graph, nodes, count, true);
}

CU_API(cuGraphNodeGetType)(CUgraphNode handle, int* type) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto node = Nodes().Find(handle);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

CU_API(cuGraphAddEmptyNode)(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return AddGraphNode(out, graph, after, count, CU_GRAPH_NODE_TYPE_EMPTY,
                      [](const NodeWork*, NodeWork*) { return CUDA_SUCCESS; });
}
