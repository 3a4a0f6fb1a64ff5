// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph/capture.h"

#include <algorithm>
#include <iterator>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture_sequence.h"

namespace vgpud::cuda {
namespace {

std::atomic<unsigned> open_captures{0};

bool NobodyCaptures() { return open_captures.load(std::memory_order_relaxed) == 0; }

// The threads' own default streams are in no table, and are blocking.
bool IsBlocking(const Device* device, uint32_t number) {
  bool blocking = true;
  Streams().ForEach([&](const std::shared_ptr<Stream>& stream) {
    if (stream->device == device && stream->id == number) blocking = (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
  });
  return blocking;
}

void Merge(std::vector<CUgraphNode>& into, const std::vector<CUgraphNode>& more) {
  for (const CUgraphNode node : more)
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
}

// Those that would be waited for by a thread that does something which no capture notices.
bool Forbids(const Capture& capture) {
  const int of_thread = ThreadCaptureMode();
  if (of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == std::this_thread::get_id()) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

Captures& TheCaptures() {
  static auto* const captures = new Captures;
  return *captures;
}

int& ThreadCaptureMode() {
  static thread_local int mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

std::shared_ptr<Capture> Captures::Of(const Device* device, uint32_t stream) const {
  for (const auto& capture : open)
    if (capture->device == device && capture->alive() && capture->streams.contains(stream)) return capture;
  return nullptr;
}

std::shared_ptr<Capture> Captures::Blocking(const Device* device) const {
  for (const auto& capture : open) {
    if (capture->device != device || !capture->alive() || capture->invalidated) continue;
    for (const auto& [number, stream] : capture->streams)
      if (stream.blocking) return capture;
  }
  return nullptr;
}

void Captures::Close(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  capture->graph->capturing = false;
  open_captures -= static_cast<unsigned>(std::erase(open, capture));
}

// Is there work in another stream that nothing in the stream of the beginning comes after?
bool Capture::unjoined() const {
  MutexLock lock(graph->mutex);
  std::map<CUgraphNode, const GraphNode*> nodes;
  for (const auto& node : graph->nodes) nodes[node->handle] = node.get();
  std::set<CUgraphNode> joined;
  std::vector<CUgraphNode> next = streams.at(origin).after;
  next.insert(next.end(), excused.begin(), excused.end());
  while (!next.empty()) {
    const CUgraphNode handle = next.back();
    next.pop_back();
    const auto node = nodes.find(handle);
    if (!joined.insert(handle).second || node == nodes.end()) continue;
    next.insert(next.end(), node->second->after.begin(), node->second->after.end());
  }
  return std::any_of(streams.begin(), streams.end(), [&](const auto& stream) {
    return std::any_of(stream.second.after.begin(), stream.second.after.end(),
                       [&](CUgraphNode node) { return nodes.contains(node) && !joined.contains(node); });
  });
}

CUresult BeginCapture(const Current& current, uint32_t stream, int mode, std::shared_ptr<Graph> graph,
                      std::vector<CUgraphNode> after) {
  if (stream == VGPU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const bool blocking = IsBlocking(current.device, stream);
  Captures& captures = TheCaptures();
  std::vector<std::shared_ptr<Capture>> stale;  // of before a reset of their context; they go without the lock
  const auto capture = std::make_shared<Capture>();
  MutexLock lock(captures.mutex);
  if (captures.Of(current.device, stream) != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const auto first =
      std::partition(captures.open.begin(), captures.open.end(), [](const auto& c) { return c->alive(); });
  std::move(first, captures.open.end(), std::back_inserter(stale));
  captures.open.erase(first, captures.open.end());
  open_captures -= static_cast<unsigned>(stale.size());
  static uint64_t last_id = 0;
  capture->id = ++last_id;
  capture->device = current.device;
  capture->epoch = current.device->epoch.load();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->own_graph = graph == nullptr;
  capture->graph = graph != nullptr ? std::move(graph) : NewGraph();
  if (capture->graph->capturing.exchange(true)) return CUDA_ERROR_ILLEGAL_STATE;
  capture->streams[stream] = {.after = std::move(after), .edges = {}, .blocking = blocking};
  captures.open.push_back(capture);
  ++open_captures;
  return CUDA_SUCCESS;
}

InCapture Capturing(const Current& current, uint32_t stream) {
  if (NobodyCaptures()) return {};
  Captures& captures = TheCaptures();
  MutexLock lock(captures.mutex);
  if (auto capture = captures.Of(current.device, stream)) {
    if (capture->invalidated) return InCapture(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return {std::move(capture), stream};
  }
  if (stream != VGPU_STREAM_LEGACY) return {};
  const auto blocking = captures.Blocking(current.device);
  if (blocking == nullptr) return {};
  blocking->invalidated = true;
  return InCapture(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult InCapture::Add(const Current& current, int type, NodeWork work) const {
  if (error_ != CUDA_SUCCESS) return error_;
  auto node = std::make_shared<GraphNode>();
  node->type = type;
  node->work = std::move(work);
  node->work.epoch = current.device->epoch.load();
  MutexLock lock(TheCaptures().mutex);
  const auto stream = capture_->streams.find(stream_);
  if (capture_->ended || stream == capture_->streams.end()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  node->after.insert(stream->second.after.begin(), stream->second.after.end());
  stream->second.after = {AppendNode(capture_->graph, std::move(node))->handle};
  return CUDA_SUCCESS;
}

std::shared_ptr<const CapturedPlace> InCapture::Here() const {
  MutexLock lock(TheCaptures().mutex);
  return std::make_shared<CapturedPlace>(CapturedPlace{capture_, capture_->streams[stream_].after});
}

CUresult RefuseInCapture(const Current& current, uint32_t stream) {
  const InCapture in = Capturing(current, stream);
  if (in.error() != CUDA_SUCCESS || !in) return in.error();
  MutexLock lock(TheCaptures().mutex);
  if (const auto capture = TheCaptures().Of(current.device, stream)) capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult RefuseWhileAnyCaptures(const Current& current) {
  if (NobodyCaptures()) return CUDA_SUCCESS;
  MutexLock lock(TheCaptures().mutex);
  CUresult error = CUDA_SUCCESS;
  for (const auto& capture : TheCaptures().open) {
    if (capture->device != current.device || !capture->alive()) continue;
    capture->invalidated = true;
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return error;
}

CUresult RefuseUnsafeCall() {
  if (NobodyCaptures()) return CUDA_SUCCESS;
  MutexLock lock(TheCaptures().mutex);
  CUresult error = CUDA_SUCCESS;
  for (const auto& capture : TheCaptures().open) {
    if (!capture->alive() || !Forbids(*capture)) continue;
    capture->invalidated = true;
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return error;
}

CUresult RefuseCapturedEvent(const CapturedPlace& place) {
  const auto capture = place.capture.lock();  // perhaps nobody else has it any more: it goes without the lock
  MutexLock lock(TheCaptures().mutex);
  if (capture != nullptr) capture->invalidated = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult WaitInCapture(const Current& current, uint32_t stream, const CapturedPlace* place, bool recorded, bool* done) {
  *done = false;
  if (place == nullptr && NobodyCaptures()) return CUDA_SUCCESS;
  const bool blocking = IsBlocking(current.device, stream);
  const auto theirs = place != nullptr ? place->capture.lock() : nullptr;  // it may go with it, without the lock
  Captures& captures = TheCaptures();
  MutexLock lock(captures.mutex);
  const auto mine = captures.Of(current.device, stream);
  const auto fail = [&](const std::shared_ptr<Capture>& other, CUresult error) {
    if (mine != nullptr) mine->invalidated = true;
    if (other != nullptr) other->invalidated = true;
    return error;
  };
  if (mine != nullptr && mine->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (place == nullptr) {
    *done = mine != nullptr && !recorded;
    if (mine != nullptr) return recorded ? fail(nullptr, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
    const auto implicit = stream == VGPU_STREAM_LEGACY ? captures.Blocking(current.device) : nullptr;
    return implicit != nullptr ? fail(implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
  }
  if (theirs == nullptr || !theirs->alive()) return fail(nullptr, CUDA_ERROR_CAPTURED_EVENT);
  if (theirs->invalidated) return fail(nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (mine != nullptr && mine != theirs) return fail(theirs, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  if (theirs->device != current.device) return fail(theirs, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (stream == VGPU_STREAM_LEGACY) return fail(theirs, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  auto& joined = theirs->streams[stream];
  if (mine == nullptr) joined.blocking = blocking;
  Merge(joined.after, place->after);
  *done = true;
  return CUDA_SUCCESS;
}

void DropFromCapture(Device* device, uint32_t stream) {
  if (NobodyCaptures()) return;
  std::shared_ptr<Capture> capture;  // what it has may go with it, without the lock
  MutexLock lock(TheCaptures().mutex);
  capture = TheCaptures().Of(device, stream);
  // Another stream's work stays where it is: it may have been joined already.
  if (capture == nullptr || stream != capture->origin) return;
  capture->invalidated = true;
  TheCaptures().Close(capture);
  if (capture->own_graph) DropGraph(capture->graph->handle);
}

}  // namespace vgpud::cuda
