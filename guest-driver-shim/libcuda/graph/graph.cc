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
  std::lock_guard lock(graph->mutex);
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
  std::lock_guard lock(graph->mutex);
  for (const auto& node : graph->nodes) Nodes().Remove(node->handle);
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphNode> AppendNode(const std::shared_ptr<Graph>& graph, std::shared_ptr<GraphNode> node) {
  node->graph = graph;
  node->handle = Nodes().Add(node);
  std::lock_guard lock(graph->mutex);
  graph->nodes.push_back(node);
  return node;
}

CUresult AddGraphNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* after, size_t count, int type,
                      uint64_t epoch, GraphWork work) {
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr || (count != 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_shared<GraphNode>();
  node->type = type;
  node->epoch = epoch;
  node->work = std::move(work);
  for (size_t i = 0; i < count; ++i) {
    if (Nodes().Find(after[i]) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    node->after.insert(after[i]);
  }
  *out = AppendNode(graph, std::move(node))->handle;
  return CUDA_SUCCESS;
}

CUresult SetGraphNode(CUgraphNode handle, int type, uint64_t epoch, GraphWork work) {
  const auto node = Nodes().Find(handle);
  if (node == nullptr || node->type != type) return CUDA_ERROR_INVALID_VALUE;
  node->epoch = epoch;
  node->work = std::move(work);
  return CUDA_SUCCESS;
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
  // A graph that is being captured belongs to its capture.
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  return DropGraph(handle);
}

CU_API(cuGraphClone)(CUgraph* out, CUgraph handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto clone = NewGraph();
  std::lock_guard lock(graph->mutex);
  std::map<CUgraphNode, CUgraphNode> twin;
  clone->references = graph->references;
  for (const auto& node : graph->nodes) {
    auto copy = std::make_shared<GraphNode>(*node);
    copy->original = node->handle;
    twin[node->handle] = AppendNode(clone, std::move(copy))->handle;
  }
  for (const auto& node : clone->nodes) {
    std::set<CUgraphNode> after;
    for (const CUgraphNode n : node->after) after.insert(twin[n]);
    node->after = std::move(after);
  }
  *out = clone->handle;
  return CUDA_SUCCESS;
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

CU_API(cuGraphAddDependencies)(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const auto node = Nodes().Find(to[i]);
    if (node == nullptr || Nodes().Find(from[i]) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(graph->mutex);
    node->after.insert(from[i]);
  }
  return CUDA_SUCCESS;
}
CU_API(cuGraphAddDependencies_v2)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData_st* edges, size_t count) {
  return edges == nullptr ? cuGraphAddDependencies(graph, from, to, count) : CUDA_ERROR_NOT_SUPPORTED;
}

CU_API(cuGraphAddEmptyNode)(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return AddGraphNode(out, graph, after, count, CU_GRAPH_NODE_TYPE_EMPTY, 0, nullptr);
}
