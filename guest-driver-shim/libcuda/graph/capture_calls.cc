// SPDX-License-Identifier: Apache-2.0
// The calls that begin, end and ask about captures.
#include <algorithm>
#include <array>
#include <utility>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture_sequence.h"

namespace vgpud::cuda {
namespace {

bool IsMode(int mode) { return mode >= 0 && mode <= CU_STREAM_CAPTURE_MODE_RELAXED; }

// Nodes of `graph` that a program names; edges with ports of device-side launches are not built.
CUresult NodesOf(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData_st* edges, size_t count,
                 std::vector<CUgraphNode>* out) {
  if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const auto node = Nodes().Find(nodes[i]);
    if (node == nullptr || node->graph.lock().get() != &graph) return CUDA_ERROR_INVALID_VALUE;
    if (edges != nullptr && !IsPlain(edges[i])) return CUDA_ERROR_NOT_SUPPORTED;
    if (std::find(out->begin(), out->end(), nodes[i]) == out->end()) out->push_back(nodes[i]);
  }
  return CUDA_SUCCESS;
}

CUresult Begin(DefaultStream mode, CUstream stream, int capture_mode) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (!IsMode(capture_mode)) return CUDA_ERROR_INVALID_VALUE;
  return BeginCapture(place.current, place.stream, capture_mode, nullptr, {});
}
CUresult BeginPlain(DefaultStream mode, CUstream stream) { return Begin(mode, stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }

CUresult BeginToGraph(DefaultStream mode, CUstream stream, CUgraph handle, const CUgraphNode* after,
                      const CUgraphEdgeData_st* edges, size_t count, int capture_mode) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  auto graph = Graphs().Find(handle);
  if (!IsMode(capture_mode) || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> nodes;
  if (const CUresult error = NodesOf(*graph, after, edges, count, &nodes)) return error;
  return BeginCapture(place.current, place.stream, capture_mode, std::move(graph), std::move(nodes));
}

// Why the capture has no graph. CUDA_SUCCESS: it has.
CUresult Verdict(const Capture& capture) {
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return capture.unjoined() ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS;
}

CUresult End(DefaultStream mode, CUstream stream, CUgraph* out) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  Captures& captures = TheCaptures();
  std::shared_ptr<Capture> capture;  // what it has may go with it, without the lock
  MutexLock lock(captures.mutex);
  capture = captures.Of(place.current.device, place.stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != place.stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const CUresult verdict = Verdict(*capture);
  captures.Close(capture);
  if (verdict == CUDA_SUCCESS) {
    *out = capture->graph->handle;
  } else if (capture->own_graph) {
    DropGraph(capture->graph->handle);
  }
  return verdict;
}

// What a program may want to know of the capture that a stream is in. All but `status` may be nullptr.
struct Wanted {
  int* status;
  unsigned long* id = nullptr;
  CUgraph* graph = nullptr;
  CUgraphNode const** after = nullptr;
  const CUgraphEdgeData_st** edges = nullptr;
  size_t* count = nullptr;
};

CUresult Tell(DefaultStream mode, CUstream stream, const Wanted& wanted) {
  const Current current = ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (wanted.status == nullptr || (wanted.edges != nullptr && wanted.after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  MutexLock lock(TheCaptures().mutex);
  const auto capture = TheCaptures().Of(current.device, number);
  if (capture == nullptr) {
    const bool implicit = number == VGPU_STREAM_LEGACY && TheCaptures().Blocking(current.device) != nullptr;
    *wanted.status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (wanted.id != nullptr) *wanted.id = 0;
    return implicit ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
  }
  *wanted.status = capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  Capture::Stream& at = capture->streams[number];
  if (wanted.id != nullptr) *wanted.id = capture->id;
  if (wanted.graph != nullptr) *wanted.graph = capture->graph->handle;
  if (wanted.after != nullptr) *wanted.after = at.after.data();
  if (wanted.count != nullptr) *wanted.count = at.after.size();
  if (wanted.edges != nullptr) {
    at.edges.assign(at.after.size(), {});
    *wanted.edges = at.edges.data();
  }
  return CUDA_SUCCESS;
}

CUresult IsCapturing(DefaultStream mode, CUstream stream, int* status) { return Tell(mode, stream, {status}); }
CUresult Info(DefaultStream mode, CUstream stream, int* status, unsigned long* id) {
  return Tell(mode, stream, {status, id});
}
CUresult InfoV2(DefaultStream mode, CUstream stream, int* status, unsigned long* id, CUgraph* graph,
                CUgraphNode const** after, size_t* count) {
  return Tell(mode, stream, {status, id, graph, after, nullptr, count});
}
CUresult InfoV3(DefaultStream mode, CUstream stream, int* status, unsigned long* id, CUgraph* graph,
                CUgraphNode const** after, const CUgraphEdgeData_st** edges, size_t* count) {
  return Tell(mode, stream, {status, id, graph, after, edges, count});
}

CUresult UpdateV2(DefaultStream mode, CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData_st* edges,
                  size_t count, unsigned flags) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(TheCaptures().mutex);
  const auto capture = TheCaptures().Of(place.current.device, place.stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto& after = capture->streams[place.stream].after;
  std::vector<CUgraphNode> next;
  if (flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES) next = after;
  if (const CUresult error = NodesOf(*capture->graph, nodes, edges, count, &next)) return error;
  capture->excused.insert(after.begin(), after.end());
  after = std::move(next);
  return CUDA_SUCCESS;
}
CUresult Update(DefaultStream mode, CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags) {
  return UpdateV2(mode, stream, nodes, nullptr, count, flags);
}

}  // namespace
}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_TWINS(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, BeginPlain, (CUstream stream), (stream))
CU_TWINS(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, Begin, (CUstream stream, int mode), (stream, mode))
CU_TWINS(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz, BeginToGraph,
         (CUstream stream, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData_st* edges,
          unsigned long count, int mode),
         (stream, graph, after, edges, count, mode))
CU_TWINS(cuStreamEndCapture, cuStreamEndCapture_ptsz, End, (CUstream stream, CUgraph* graph), (stream, graph))
CU_TWINS(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, IsCapturing, (CUstream stream, int* status), (stream, status))
CU_TWINS(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, Info, (CUstream stream, int* status, unsigned long* id),
         (stream, status, id))
CU_TWINS(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz, InfoV2,
         (CUstream stream, int* status, unsigned long* id, CUgraph* graph, CUgraphNode const** after,
          unsigned long* count),
         (stream, status, id, graph, after, count))
CU_TWINS(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz, InfoV3,
         (CUstream stream, int* status, unsigned long* id, CUgraph* graph, CUgraphNode const** after,
          const CUgraphEdgeData_st** edges, unsigned long* count),
         (stream, status, id, graph, after, edges, count))
CU_TWINS(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz, Update,
         (CUstream stream, CUgraphNode* nodes, unsigned long count, unsigned flags), (stream, nodes, count, flags))
CU_TWINS(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz, UpdateV2,
         (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData_st* edges, unsigned long count, unsigned flags),
         (stream, nodes, edges, count, flags))

CU_API(cuThreadExchangeStreamCaptureMode)(int* mode) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (mode == nullptr || !IsMode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, ThreadCaptureMode());
  return CUDA_SUCCESS;
}
