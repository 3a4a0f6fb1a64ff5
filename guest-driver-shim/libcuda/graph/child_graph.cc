// SPDX-License-Identifier: Apache-2.0
// Graphs inside of nodes, and copies of graphs with all that is inside of them.
#include <algorithm>
#include <utility>

#include "guest-driver-shim/libcuda/graph/body.h"

namespace vgpud::cuda {
namespace {

const EmbeddedGraph* ChildOf(const GraphNode& node) {
  const auto* const child = std::get_if<std::shared_ptr<EmbeddedGraph>>(&node.work.params);
  return child != nullptr ? child->get() : nullptr;
}

// Is `inner` the graph itself, or inside of one of its nodes?
bool Contains(Graph& graph, CUgraph inner) {
  if (graph.handle == inner) return true;
  MutexLock lock(graph.mutex);
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
    const EmbeddedGraph* const child = ChildOf(*node);
    return child != nullptr && Contains(*child->graph, inner);
  });
}

}  // namespace

EmbeddedGraph::EmbeddedGraph(std::shared_ptr<Graph> of) : graph(std::move(of)) { graph->embedded = true; }
EmbeddedGraph::~EmbeddedGraph() { DropGraph(graph->handle); }

void CopyNodes(const NodeList& nodes, const std::shared_ptr<Graph>& to) {
  std::map<CUgraphNode, CUgraphNode> twin;
  NodeList copies;
  for (const auto& node : nodes) {
    auto copy = std::make_shared<GraphNode>(*node);
    copy->original = node->handle;
    if (node->body != nullptr) {
      copy->work.params = Embed(node->body->nodes);
      copy->body = nullptr;
    } else if (const EmbeddedGraph* const child = ChildOf(*node)) {
      MutexLock lock(child->graph->mutex);
      copy->work.params = Embed(child->graph->nodes);
    }
    copies.push_back(AppendNode(to, std::move(copy)));
    twin[node->handle] = copies.back()->handle;
  }
  MutexLock lock(to->mutex);
  for (const auto& copy : copies) {
    std::set<CUgraphNode> after;
    for (const CUgraphNode node : copy->after)
      if (const auto it = twin.find(node); it != twin.end()) after.insert(it->second);
    copy->after = std::move(after);
  }
}

std::shared_ptr<EmbeddedGraph> Embed(const NodeList& nodes) {
  auto graph = std::make_shared<EmbeddedGraph>(NewGraph());
  CopyNodes(nodes, graph->graph);
  return graph;
}

CUresult EmbedGraph(CUgraph handle, CUgraph move_into, NodeWork* out) {
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || graph->moved || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  if (move_into != nullptr) {
    if (Contains(*graph, move_into) || graph->embedded.exchange(true)) return CUDA_ERROR_INVALID_VALUE;
    graph->moved = true;
    out->params = std::make_shared<EmbeddedGraph>(graph);
    return CUDA_SUCCESS;
  }
  MutexLock lock(graph->mutex);
  if (std::any_of(graph->nodes.begin(), graph->nodes.end(),
                  [](const auto& node) { return IsMemoryNode(*node) || node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL; }))
    return CUDA_ERROR_INVALID_VALUE;
  out->params = Embed(graph->nodes);
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphClone)(CUgraph* out, CUgraph handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  if (std::any_of(graph->nodes.begin(), graph->nodes.end(),
                  [](const auto& node) { return node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL; }))
    return CUDA_ERROR_INVALID_VALUE;
  const auto clone = NewGraph();
  {
    MutexLock clone_lock(clone->mutex);
    clone->references = graph->references;
  }
  CopyNodes(graph->nodes, clone);
  *out = clone->handle;
  return CUDA_SUCCESS;
}

CU_API(cuGraphChildGraphNodeGetGraph)(CUgraphNode handle, CUgraph* out) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto node = Nodes().Find(handle);
  const auto graph = node != nullptr ? node->graph.lock() : nullptr;
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(graph->mutex);
  const EmbeddedGraph* const child = ChildOf(*node);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = child->graph->handle;
  return CUDA_SUCCESS;
}
