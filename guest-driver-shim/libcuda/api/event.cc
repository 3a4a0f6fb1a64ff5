// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/api/event.h"

#include <map>
#include <utility>

#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/marker.h"
#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/launch/host_function.h"
#include "guest-driver-shim/libcuda/launch/submit.h"

namespace vgpud::cuda {
namespace {

struct Event {
  unsigned flags = 0;
  CUcontext context = nullptr;
  std::shared_ptr<Marker> marker;

  // Where a capture has recorded it last; nullptr: elsewhere.
  std::shared_ptr<const CapturedPlace> captured() const {
    MutexLock lock(mutex_);
    return captured_;
  }
  void set_captured(std::shared_ptr<const CapturedPlace> place) {
    MutexLock lock(mutex_);
    captured_ = std::move(place);
  }

 private:
  mutable Mutex mutex_{lock_rank::kEvent};
  std::shared_ptr<const CapturedPlace> captured_ GUARDED_BY(mutex_);
};

// What the host asks of an event, it may not ask of one that was recorded in a capture, nor while it captures.
CUresult RefuseQuestion(const Event& event) {
  if (const auto captured = event.captured()) return RefuseCapturedEvent(*captured);
  return RefuseUnsafeCall();
}

HandleTable<CUevent, Event>& Events() {
  static auto* const table = new HandleTable<CUevent, Event>(0xe7);
  return *table;
}

GraphWork RecordingWork(std::shared_ptr<Marker> marker) {
  return [marker = std::move(marker)](const Current& at, uint32_t on) { return marker->Record(at, on); };
}
// Another device's event is nothing that this one's executor could wait for: a host function does, when its turn comes
// in the stream.
CUresult HoldFor(const Marker& marker, const Current& current, uint32_t stream) {
  if (marker.device() == current.device) return marker.Hold(current, stream);
  const auto wait = marker.WaitForThis();
  return wait == nullptr ? CUDA_SUCCESS : EnqueueHostFunction(current, stream, [wait](CUresult) { wait(); });
}
GraphWork WaitingWork(std::shared_ptr<Marker> marker) {
  return [marker = std::move(marker)](const Current& at, uint32_t on) { return HoldFor(*marker, at, on); };
}

CUresult Record(DefaultStream mode, CUevent event, CUstream stream, unsigned flags) {
  const Current current = ContextOf(stream);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Events().Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (found->marker->device() != current.device) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  const InCapture capture = Capturing(current, number);
  if (capture.error() != CUDA_SUCCESS) return capture.error();
  if (!capture && flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  if (!capture) {
    found->set_captured(nullptr);
    return found->marker->Record(current, number);
  }
  if (flags != CU_EVENT_RECORD_EXTERNAL) {
    found->set_captured(capture.Here());
    return CUDA_SUCCESS;
  }
  return capture.Add(current, CU_GRAPH_NODE_TYPE_EVENT_RECORD, {RecordingWork(found->marker), event});
}

CUresult Elapsed(float* milliseconds, CUevent start, CUevent end) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto first = Events().Find(start), second = Events().Find(end);
  if (first == nullptr || second == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& event : {first, second})
    if (const auto captured = event->captured()) return RefuseCapturedEvent(*captured);
  if (((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  if (!first->marker->recorded() || !second->marker->recorded()) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = first->marker->device()->channel->Sticky()) return error;
  if (!first->marker->Reached() || !second->marker->Reached()) return CUDA_ERROR_NOT_READY;
  const auto nanoseconds = static_cast<int64_t>(second->marker->time_ns() - first->marker->time_ns());
  *milliseconds = static_cast<float>(static_cast<double>(nanoseconds) / 1e6);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CheckEventOfLaunch(const Current& current, CUevent event) {
  const auto found = Events().Find(event);
  if (found == nullptr || found->marker->device() != current.device) return CUDA_ERROR_INVALID_HANDLE;
  return (found->flags & CU_EVENT_DISABLE_TIMING) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult RecordEvent(DefaultStream mode, CUevent event, CUstream stream) { return Record(mode, event, stream, 0); }

CUresult StreamWaitsForEvent(const Current& current, uint32_t stream, CUevent event, bool external) {
  const auto found = Events().Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (external) {
    const InCapture capture = Capturing(current, stream);
    if (!capture) return CUDA_ERROR_INVALID_VALUE;
    return capture.Add(current, CU_GRAPH_NODE_TYPE_WAIT_EVENT, {WaitingWork(found->marker), event});
  }
  bool done;
  const auto captured = found->captured();
  const bool recorded = found->marker->recorded();
  if (const CUresult error = WaitInCapture(current, stream, captured.get(), recorded, &done)) return error;
  if (done) return CUDA_SUCCESS;
  return HoldFor(*found->marker, current, stream);
}

namespace {

// The legacy stream's work waits for that of others, which the executor cannot tell from the stream's own.
bool CanAsk(const Current& current, uint32_t stream) {
  return (current.channel->transport().info().features & VGPU_FEATURE_STREAM_QUERY) != 0 &&
         stream != VGPU_STREAM_LEGACY;
}

CUresult AskStream(const Current& current, uint32_t stream) {
  Command command;
  command.op = VGPU_OP_STREAM_QUERY;
  command.args[0] = stream;
  const Completion done = current.channel->Call(command);
  if (done.status != CUDA_SUCCESS) return done.status;
  return done.value[0] == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // namespace

CUresult EventWork(const Current& current, CUevent event, bool records, NodeWork* out) {
  const auto found = Events().Find(event);
  if (found == nullptr || found->marker->device() != current.device) return CUDA_ERROR_INVALID_VALUE;
  out->submit = records ? RecordingWork(found->marker) : WaitingWork(found->marker);
  out->params = event;
  return CUDA_SUCCESS;
}

CUresult QueryStream(const Current& current, uint32_t stream) {
  if (const CUresult error = RefuseInCapture(current, stream)) return error;
  struct Question {
    std::shared_ptr<Marker> marker;
    uint64_t work = 0;      // what the stream had been given when it was asked
    bool pending = false;   // the marker tells when that is done
    bool answered = false;  // that is done
  };
  // One outstanding question per thread and stream, so that a polling loop asks the executor once, not with each call.
  static thread_local std::map<std::pair<Device*, uint32_t>, Question> questions;
  Question& question = questions[{current.device, stream}];
  if (question.marker == nullptr) question.marker = Marker::Make(current.device);
  if (question.pending && !question.marker->Reached()) return CUDA_ERROR_NOT_READY;
  if (question.pending) question.answered = true;
  question.pending = false;
  const uint64_t work = current.channel->StreamWork(stream);
  if (question.answered && question.work == work) return CUDA_SUCCESS;
  // A stream that has been waited for is ready at the first question. A marker would still be on its way then.
  if (stream == VGPU_STREAM_LEGACY && current.channel->LegacyStreamIsDone()) return CUDA_SUCCESS;
  if (CanAsk(current, stream)) {
    const CUresult answer = AskStream(current, stream);
    if (answer != CUDA_ERROR_NOT_READY) {
      question.answered = answer == CUDA_SUCCESS;
      question.work = work;
      return answer;
    }
  }
  // Whoever asks does not wait for a slot.
  if (!current.device->events->HasFree()) return CUDA_ERROR_NOT_READY;
  if (const CUresult error = question.marker->Record(current, stream)) return error;
  question.work = current.channel->StreamWork(stream);
  question.pending = true;
  return question.marker->Reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

void DropEventsOf(CUcontext context) {
  Events().RemoveIf([context](const Event& event) { return event.context == context; });
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuEventCreate)(CUevent* out, unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  auto event = std::make_shared<Event>();
  event->flags = flags;
  event->context = current.context->handle;
  event->marker = Marker::Make(current.device);
  *out = Events().Add(std::move(event));
  return CUDA_SUCCESS;
}

CU_API(cuEventDestroy_v2)(CUevent event) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Events().Remove(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CU_API(cuEventDestroy)(CUevent event) { return cuEventDestroy_v2(event); }

CU_API(cuEventQuery)(CUevent event) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto found = Events().Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = RefuseQuestion(*found)) return error;
  if (const CUresult error = found->marker->device()->channel->Sticky()) return error;
  if (found->marker->recorded() && !found->marker->Reached()) return CUDA_ERROR_NOT_READY;
  const Current current = CurrentContext();
  return current.error != CUDA_SUCCESS ? CUDA_SUCCESS : FetchManaged(current, false);
}

CU_API(cuEventSynchronize)(CUevent event) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto found = Events().Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = RefuseQuestion(*found)) return error;
  if (!found->marker->recorded()) return found->marker->device()->channel->Sticky();
  if (const CUresult error = found->marker->Wait()) return error;
  const Current current = CurrentContext();
  return current.error != CUDA_SUCCESS ? CUDA_SUCCESS : FetchManaged(current, false);
}

CU_API(cuEventElapsedTime)(float* milliseconds, CUevent start, CUevent end) {
  return Elapsed(milliseconds, start, end);
}
CU_API(cuEventElapsedTime_v2)(float* milliseconds, CUevent start, CUevent end) {
  return Elapsed(milliseconds, start, end);
}

CU_TWINS(cuEventRecord, cuEventRecord_ptsz, RecordEvent, (CUevent event, CUstream stream), (event, stream))
CU_TWINS(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz, Record, (CUevent event, CUstream stream, unsigned flags),
         (event, stream, flags))
