// SPDX-License-Identifier: Apache-2.0
// Executable graphs: made of a graph as it is at that moment, launched, and given other parameters.
#include <algorithm>
#include <utility>

#include "guest-driver-shim/libcuda/driver/streams.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/graph/graph_parts.h"
#include "guest-driver-shim/libcuda/graph/lanes.h"

namespace vgpud::cuda {
namespace {

struct Executable {
  std::mutex mutex;
  NodeList nodes;  // in an order that respects the dependencies; a node is replaced, never changed
  References references;
  std::shared_ptr<Lanes> lanes;
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

// The whole as the work of one node.
GraphWork WorkOf(NodeList nodes) {
  auto lanes = std::make_shared<Lanes>(nodes);
  return [lanes = std::move(lanes), nodes = std::move(nodes)](const Current& at, uint32_t stream) {
    return lanes->Submit(at, stream, nodes);
  };
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
  executable->lanes = std::make_shared<Lanes>(executable->nodes);
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
  if (const InCapture capture = Capturing(current, number))
    return capture.Add(current, CU_GRAPH_NODE_TYPE_GRAPH, WorkOf(std::move(nodes)));
  return executable->lanes->Submit(current, number, nodes);
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

}  // namespace

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
  *out = WorkOf(std::move(nodes));
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

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
