// SPDX-License-Identifier: Apache-2.0
// What depends on what in a graph: said, asked, taken away again, and nodes taken out. All edges are plain ones.
#include <algorithm>

#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {
namespace {

using Edge = std::pair<CUgraphNode, CUgraphNode>;  // from, to

std::vector<Edge> EdgesOf(Graph& graph) {
  MutexLock lock(graph.mutex);
  std::vector<Edge> edges;
  for (const auto& node : graph.nodes)
    for (const CUgraphNode from : node->after) edges.emplace_back(from, node->handle);
  return edges;
}

// Fills the caller's arrays, each of which may be nullptr, with as many as there are; the rest is zero. *count: how
// many there are, or were given.
CUresult Give(const std::vector<Edge>& edges, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData_st* data,
              size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (from == nullptr && to == nullptr) {
    if (data != nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = edges.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) {
    if (from != nullptr) from[i] = i < edges.size() ? edges[i].first : nullptr;
    if (to != nullptr) to[i] = i < edges.size() ? edges[i].second : nullptr;
    if (data != nullptr) data[i] = {};
  }
  *count = std::min(*count, edges.size());
  return CUDA_SUCCESS;
}

CUresult AllEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData_st* data, size_t* count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Give(EdgesOf(*graph), from, to, data, count);
}

// The nodes before `handle`, or those behind it.
CUresult Neighbours(CUgraphNode handle, bool before, CUgraphNode* out, CUgraphEdgeData_st* data, size_t* count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto node = Nodes().Find(handle);
  const auto graph = node != nullptr ? node->graph.lock() : nullptr;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Edge> edges = EdgesOf(*graph);
  std::erase_if(edges, [&](const Edge& edge) { return (before ? edge.second : edge.first) != handle; });
  return before ? Give(edges, out, nullptr, data, count) : Give(edges, nullptr, out, data, count);
}

CUresult AddEdges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData_st* data,
                  size_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  const auto is_mine = [&](CUgraphNode node) {
    const auto found = Nodes().Find(node);
    return found != nullptr && found->graph.lock() == graph;
  };
  for (size_t i = 0; i < count; ++i) {
    if (data != nullptr && !IsPlain(data[i])) return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_mine(from[i]) || !is_mine(to[i])) return CUDA_ERROR_INVALID_VALUE;
  }
  MutexLock lock(graph->mutex);
  for (size_t i = 0; i < count; ++i) Nodes().Find(to[i])->after.insert(from[i]);
  return CUDA_SUCCESS;
}

CUresult RemoveEdges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData_st* data,
                     size_t count) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  for (size_t i = 0; i < count; ++i) {
    const auto node = Nodes().Find(to[i]);
    const bool there = node != nullptr && node->graph.lock() == graph && node->after.contains(from[i]);
    if (!there || (data != nullptr && !IsPlain(data[i]))) return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) Nodes().Find(to[i])->after.erase(from[i]);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphGetEdges)(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return AllEdges(graph, from, to, nullptr, count);
}
CU_API(cuGraphGetEdges_v2)
(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData_st* data, size_t* count) {
  return AllEdges(graph, from, to, data, count);
}
CU_API(cuGraphNodeGetDependencies)(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return Neighbours(node, true, out, nullptr, count);
}
CU_API(cuGraphNodeGetDependencies_v2)(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData_st* data, size_t* count) {
  return Neighbours(node, true, out, data, count);
}
CU_API(cuGraphNodeGetDependentNodes)(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return Neighbours(node, false, out, nullptr, count);
}
CU_API(cuGraphNodeGetDependentNodes_v2)(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData_st* data, size_t* count) {
  return Neighbours(node, false, out, data, count);
}
CU_API(cuGraphAddDependencies)(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return AddEdges(graph, from, to, nullptr, count);
}
CU_API(cuGraphAddDependencies_v2)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData_st* data, size_t count) {
  return AddEdges(graph, from, to, data, count);
}
CU_API(cuGraphRemoveDependencies)(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return RemoveEdges(graph, from, to, nullptr, count);
}
CU_API(cuGraphRemoveDependencies_v2)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData_st* data, size_t count) {
  return RemoveEdges(graph, from, to, data, count);
}

CU_API(cuGraphDestroyNode)(CUgraphNode handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto node = Nodes().Find(handle);
  const auto graph = node != nullptr ? node->graph.lock() : nullptr;
  // While a graph is being captured its nodes stay.
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  if (std::any_of(graph->nodes.begin(), graph->nodes.end(), [](const auto& each) { return IsMemoryNode(*each); }))
    return CUDA_ERROR_INVALID_VALUE;
  Nodes().Remove(handle);
  std::erase(graph->nodes, node);
  for (const auto& other : graph->nodes) other->after.erase(handle);
  return CUDA_SUCCESS;
}

CU_API(cuGraphNodeFindInClone)(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(clone);
  if (graph == nullptr || out == nullptr || original == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  const auto found = std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                  [&](const auto& node) { return node->original == original; });
  if (found == graph->nodes.end()) return CUDA_ERROR_INVALID_VALUE;
  *out = (*found)->handle;
  return CUDA_SUCCESS;
}
