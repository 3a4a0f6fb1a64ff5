// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph.h"

#include <algorithm>
#include <set>

#include "guest-driver-shim/libcuda/driver/streams.h"

namespace vgpud::cuda {

struct GraphNode {
  int type = CU_GRAPH_NODE_TYPE_EMPTY;
  uint64_t epoch = 0;  // of the device, when the work was recorded
  GraphWork work;
  CUgraphNode handle = nullptr;
  std::set<CUgraphNode> after;
};
using NodeList = std::vector<std::shared_ptr<GraphNode>>;

class Graph {
 public:
  std::mutex mutex;
  NodeList nodes;  // as they were added
  uint64_t id = 0;
};

namespace {

struct Executable {
  std::mutex mutex;
  NodeList nodes;  // in an order that respects the dependencies; a node is replaced, never changed
};

HandleTable<CUgraph, Graph>& Graphs() {
  static auto* const table = new HandleTable<CUgraph, Graph>(0x6a);
  return *table;
}
HandleTable<CUgraphNode, GraphNode>& Nodes() {
  static auto* const table = new HandleTable<CUgraphNode, GraphNode>(0x6b);
  return *table;
}
HandleTable<CUgraphExec, Executable>& Executables() {
  static auto* const table = new HandleTable<CUgraphExec, Executable>(0x6c);
  return *table;
}

using StreamKey = std::pair<Device*, uint32_t>;
struct Captures {
  std::mutex mutex;
  struct Stream {
    std::shared_ptr<Graph> graph;
    bool origin = false;
  };
  std::map<StreamKey, Stream> streams;
  std::map<const void*, std::weak_ptr<Graph>> events;
};
Captures& TheCaptures() {
  static auto* const captures = new Captures;
  return *captures;
}
std::atomic<unsigned> capturing_streams{0};

std::shared_ptr<Graph> NewGraph() {
  static std::atomic<uint64_t> next{1};
  auto graph = std::make_shared<Graph>();
  graph->id = next.fetch_add(1);
  return graph;
}

std::shared_ptr<GraphNode> Append(Graph& graph, std::shared_ptr<GraphNode> node) {
  node->handle = Nodes().Add(node);
  std::lock_guard lock(graph.mutex);
  graph.nodes.push_back(node);
  return node;
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
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto executable = std::make_shared<Executable>();
  if (!SortedCopies(*graph, &executable->nodes)) return CUDA_ERROR_INVALID_VALUE;
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

CUresult Begin(DefaultStream mode, CUstream stream, int capture_mode) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (capture_mode < 0 || capture_mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  if (number == VGPU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard lock(TheCaptures().mutex);
  const auto [it, fresh] = TheCaptures().streams.try_emplace({current.device, number});
  if (!fresh) return CUDA_ERROR_ILLEGAL_STATE;
  it->second = {NewGraph(), true};
  ++capturing_streams;
  return CUDA_SUCCESS;
}
CUresult BeginPlain(DefaultStream mode, CUstream stream) { return Begin(mode, stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }

CUresult End(DefaultStream mode, CUstream stream, CUgraph* out) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  std::lock_guard lock(TheCaptures().mutex);
  auto& streams = TheCaptures().streams;
  const auto it = streams.find({current.device, number});
  if (it == streams.end()) return CUDA_ERROR_ILLEGAL_STATE;
  if (!it->second.origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  const auto graph = it->second.graph;
  capturing_streams -=
      static_cast<unsigned>(std::erase_if(streams, [&](const auto& s) { return s.second.graph == graph; }));
  *out = Graphs().Add(graph);
  return CUDA_SUCCESS;
}

// Status and id of the stream's capture.
CUresult Info(DefaultStream mode, CUstream stream, int* status, unsigned long* id) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  const auto graph = Capturing(current.device, number);
  *status = graph != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (id != nullptr) *id = graph != nullptr ? graph->id : 0;
  return CUDA_SUCCESS;
}
CUresult IsCapturing(DefaultStream mode, CUstream stream, int* status) { return Info(mode, stream, status, nullptr); }

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
  *out = Append(*graph, std::move(node))->handle;
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

std::shared_ptr<Graph> Capturing(Device* device, uint32_t stream) {
  if (capturing_streams.load(std::memory_order_relaxed) == 0) return nullptr;
  std::lock_guard lock(TheCaptures().mutex);
  const auto it = TheCaptures().streams.find({device, stream});
  return it == TheCaptures().streams.end() ? nullptr : it->second.graph;
}

CUresult Capture(const Current& current, Graph& graph, int type, GraphWork work) {
  auto node = std::make_shared<GraphNode>();
  node->type = type;
  node->epoch = current.device->epoch.load();
  node->work = std::move(work);
  // Streams of one capture may depend on each other in any way: each node comes after all that were captured before it.
  {
    std::lock_guard lock(graph.mutex);
    if (!graph.nodes.empty()) node->after.insert(graph.nodes.back()->handle);
  }
  Append(graph, std::move(node));
  return CUDA_SUCCESS;
}

void CaptureEvent(const void* event, const std::shared_ptr<Graph>& graph) {
  std::lock_guard lock(TheCaptures().mutex);
  TheCaptures().events[event] = graph;
}

bool JoinCapture(const void* event, Device* device, uint32_t stream) {
  std::lock_guard lock(TheCaptures().mutex);
  const auto it = TheCaptures().events.find(event);
  const auto graph = it == TheCaptures().events.end() ? nullptr : it->second.lock();
  if (graph == nullptr) return false;
  const auto [place, fresh] = TheCaptures().streams.try_emplace({device, stream});
  if (fresh) {
    place->second.graph = graph;
    ++capturing_streams;
  }
  return true;
}

void ForgetCapturedEvent(const void* event) {
  if (capturing_streams.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(TheCaptures().mutex);
  TheCaptures().events.erase(event);
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphCreate)(CUgraph* out, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = Graphs().Add(NewGraph());
  return CUDA_SUCCESS;
}

CU_API(cuGraphDestroy)(CUgraph handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Remove(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graph->mutex);
  for (const auto& node : graph->nodes) Nodes().Remove(node->handle);
  return CUDA_SUCCESS;
}

CU_API(cuGraphClone)(CUgraph* out, CUgraph handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto clone = NewGraph();
  std::lock_guard lock(graph->mutex);
  std::map<CUgraphNode, CUgraphNode> twin;
  for (const auto& node : graph->nodes) {
    twin[node->handle] = Append(*clone, std::make_shared<GraphNode>(*node))->handle;
  }
  for (const auto& node : clone->nodes) {
    std::set<CUgraphNode> after;
    for (const CUgraphNode n : node->after) after.insert(twin[n]);
    node->after = std::move(after);
  }
  *out = Graphs().Add(clone);
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

CU_TWINS(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, BeginPlain, (CUstream stream), (stream))
CU_TWINS(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, Begin, (CUstream stream, int mode), (stream, mode))
CU_TWINS(cuStreamEndCapture, cuStreamEndCapture_ptsz, End, (CUstream stream, CUgraph* graph), (stream, graph))
CU_TWINS(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, IsCapturing, (CUstream stream, int* status), (stream, status))
CU_TWINS(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, Info, (CUstream stream, int* status, unsigned long* id),
         (stream, status, id))

CU_API(cuThreadExchangeStreamCaptureMode)(int* mode) {
  static thread_local int of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (mode == nullptr || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, of_thread);
  return CUDA_SUCCESS;
}
