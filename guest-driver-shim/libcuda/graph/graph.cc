// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph/graph.h"

#include <algorithm>
#include <utility>

#include "guest-driver-shim/libcuda/driver/streams.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {

namespace {

struct Executable {
  std::mutex mutex;
  NodeList nodes;  // in an order that respects the dependencies; a node is replaced, never changed
  References references;
};

HandleTable<CUgraphExec, Executable>& Executables() {
  static auto* const table = new HandleTable<CUgraphExec, Executable>(0x6c);
  return *table;
}

// False when the dependencies form a circle.
bool Sort(NodeList nodes, NodeList* sorted) {
  std::set<CUgraphNode> open;
  for (const auto& node : nodes) open.insert(node->handle);
  while (!nodes.empty()) {
    const auto ready = std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) {
      return std::none_of(node->after.begin(), node->after.end(), [&](CUgraphNode n) { return open.contains(n); });
    });
    if (ready == nodes.end()) return false;
    open.erase((*ready)->handle);
    sorted->push_back(*ready);
    nodes.erase(ready);
  }
  return true;
}

// Copies, in an order that respects the dependencies: the graph's own nodes may change later.
bool SortedCopies(Graph& graph, NodeList* sorted) {
  std::lock_guard lock(graph.mutex);
  NodeList copies;
  for (const auto& node : graph.nodes) copies.push_back(std::make_shared<GraphNode>(*node));
  return Sort(std::move(copies), sorted);
}

CUresult Submit(const Current& current, uint32_t stream, const NodeList& nodes) {
  for (const auto& node : nodes) {
    if (node->work == nullptr) continue;
    if (node->epoch != current.device->epoch.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (const CUresult error = node->work(current, stream)) return error;
  }
  return CUDA_SUCCESS;
}

CUresult Instantiate(CUgraphExec* out, CUgraph handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  auto executable = std::make_shared<Executable>();
  if (!SortedCopies(*graph, &executable->nodes)) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(graph->mutex);
    executable->references = graph->references;
  }
  *out = Executables().Add(std::move(executable));
  return CUDA_SUCCESS;
}

CUresult Launch(DefaultStream mode, CUgraphExec handle, CUstream stream) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto executable = Executables().Find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  NodeList nodes;
  {
    std::lock_guard lock(executable->mutex);
    nodes = executable->nodes;
  }
  if (const InCapture capture = Capturing(current, number)) {
    return capture.Add(current, CU_GRAPH_NODE_TYPE_GRAPH,
                       [nodes](const Current& at, uint32_t on) { return Submit(at, on, nodes); });
  }
  return Submit(current, number, nodes);
}

// Gives the nodes of an executable what those of a graph of the same form do. *failed: the graph's node that does not
// fit, nullptr if it is the whole.
CUresult Update(CUgraphExec handle, CUgraph from, int* result, CUgraphNode* failed) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto executable = Executables().Find(handle);
  const auto graph = Graphs().Find(from);
  if (executable == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *failed = nullptr;
  NodeList sorted;
  if (!SortedCopies(*graph, &sorted)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(executable->mutex);
  const auto fail = [&](int why) {
    *result = why;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  if (sorted.size() != executable->nodes.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  for (size_t n = 0; n < sorted.size(); ++n) {
    const GraphNode& old = *executable->nodes[n];
    *failed = sorted[n]->handle;
    if (sorted[n]->type != old.type) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    if (sorted[n]->after.size() != old.after.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    // The executable's nodes go on being named by the handles that it was made of.
    sorted[n]->handle = old.handle;
    sorted[n]->after = old.after;
  }
  *failed = nullptr;
  executable->nodes = std::move(sorted);
  *result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult Upload(DefaultStream, CUgraphExec handle, CUstream) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Executables().Find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

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

CUresult SetExecutableNode(CUgraphExec handle, CUgraphNode node, int type, uint64_t epoch, GraphWork work) {
  const auto executable = Executables().Find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(executable->mutex);
  for (auto& own : executable->nodes) {
    if (own->handle != node) continue;
    if (own->type != type) return CUDA_ERROR_INVALID_VALUE;
    auto changed = std::make_shared<GraphNode>(*own);
    changed->epoch = epoch;
    changed->work = std::move(work);
    own = std::move(changed);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult WorkOfGraph(CUgraph handle, GraphWork* out) {
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeList nodes;
  if (!SortedCopies(*graph, &nodes)) return CUDA_ERROR_INVALID_VALUE;
  *out = [nodes](const Current& current, uint32_t stream) { return Submit(current, stream, nodes); };
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

CU_API(cuGraphInstantiateWithFlags)(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  constexpr auto kKnown = static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                                          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY |
                                                          CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return Instantiate(out, graph);
}
CU_API(cuGraphInstantiate)(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
  return Instantiate(out, graph);
}
CU_API(cuGraphInstantiate_v2)(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
  return Instantiate(out, graph);
}
CU_API(cuGraphExecDestroy)(CUgraphExec executable) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Executables().Remove(executable) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CU_API(cuGraphExecUpdate)(CUgraphExec executable, CUgraph graph, CUgraphNode* failed, int* result) {
  if (failed == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Update(executable, graph, result, failed);
}
CU_API(cuGraphExecUpdate_v2)(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo_st* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int result = CU_GRAPH_EXEC_UPDATE_ERROR;
  info->errorFromNode = nullptr;
  const CUresult error = Update(executable, graph, &result, &info->errorNode);
  info->result = static_cast<decltype(info->result)>(result);
  return error;
}
CU_TWINS(cuGraphLaunch, cuGraphLaunch_ptsz, Launch, (CUgraphExec executable, CUstream stream), (executable, stream))
CU_TWINS(cuGraphUpload, cuGraphUpload_ptsz, Upload, (CUgraphExec executable, CUstream stream), (executable, stream))
