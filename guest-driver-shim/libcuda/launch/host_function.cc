// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/launch/host_function.h"

#include <list>
#include <map>
#include <optional>
#include <utility>

#include "guest-driver-shim/libcuda/channel/own_thread.h"
#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace vgpud::cuda {
namespace {

struct Pending {
  std::shared_ptr<EventRecord> reached;
  Gate gate;
  std::function<void(CUresult)> function;
  bool takes_turn = false;
};

// The host functions of one stream that have not returned. It has a thread of its own, so that streams never wait for
// each other.
struct Line {
  Device* device = nullptr;
  uint32_t stream = 0;
  uint32_t gate = 0;           // that its functions share, if they do
  std::list<Pending> pending;  // in the order of the stream; this and the next under HostFunctions::mutex
  size_t submitters = 0;       // that will add one, or give up
  CondVar changed;
};
using LineKey = std::pair<Device*, uint32_t>;

struct HostFunctions {
  Mutex mutex{lock_rank::kHostFunctions};
  std::map<LineKey, std::shared_ptr<Line>> lines GUARDED_BY(mutex);
};
HostFunctions& All() {
  static auto* const all = new HostFunctions;
  return *all;
}

void Serve(const std::shared_ptr<Line>& line);

// False: the system has no more threads.
bool ServeInThread(const std::shared_ptr<Line>& line) {
  std::thread thread;
  if (!StartThread(&thread, [line] { Serve(line); })) return false;
  thread.detach();
  return true;
}

// Whatever ends a function ends its place in the stream: it returns, or its thread ends in it (pthread_exit). Then
// another thread goes on with the line.
class Calling {
 public:
  Calling(std::shared_ptr<Line> line, Pending& pending) : line_(std::move(line)), pending_(pending) {
    if (pending.takes_turn) exempt_.emplace();
  }
  Calling(const Calling&) = delete;
  ~Calling() {
    // What it holds, memory or streams of the device, goes before anybody who waits for the stream comes back: the next
    // thing may be a reset of the context, which has none of that any more.
    pending_.function = nullptr;
    line_->device->gates->Open(pending_.gate);
    if (pending_.takes_turn) line_->device->channel->turns().End();
    if (!returned_ && !ServeInThread(line_)) Serve(line_);  // the thread ends a little later
  }
  void Returned() { returned_ = true; }

 private:
  const std::shared_ptr<Line> line_;
  Pending& pending_;
  std::optional<Turns::Exempt> exempt_;
  bool returned_ = false;
};

// The next of the line; false when it is over.
bool TakeNext(const std::shared_ptr<Line>& line, Pending* next) {
  HostFunctions& all = All();
  MutexLock lock(all.mutex);
  while (line->pending.empty() && line->submitters != 0) line->changed.Wait(all.mutex);
  if (line->pending.empty()) {
    line->device->gates->GiveBack(line->gate);
    all.lines.erase({line->device, line->stream});
    return false;
  }
  *next = std::move(line->pending.front());
  line->pending.pop_front();
  return true;
}

// An exception that leaves a function of the program finds no handler here, so the program's std::terminate is called
// where it was thrown.
void Serve(const std::shared_ptr<Line>& line) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  LetFaultsThrough();
  Device& device = *line->device;
  for (Pending next; TakeNext(line, &next);) {
    const CUresult status = device.events->Wait(*next.reached);
    Calling calling(line, next);
    lock_check::BeforeCallingTheProgram();
    next.function(next.reached->epoch == device.epoch.load() ? status : CUDA_ERROR_CONTEXT_IS_DESTROYED);
    calling.Returned();
  }
}

// The line of a stream, with a thread; nullptr when there is none for it. Waits where too many streams have one
// (Gates::TryShare). The caller is one of its submitters.
std::shared_ptr<Line> Join(Device* device, uint32_t stream) {
  HostFunctions& all = All();
  for (;; device->gates->AwaitShared()) {
    MutexLock lock(all.mutex);
    if (const auto it = all.lines.find({device, stream}); it != all.lines.end()) {
      ++it->second->submitters;
      return it->second;
    }
    auto line = std::make_shared<Line>();
    line->device = device;
    line->stream = stream;
    line->submitters = 1;
    const auto it = all.lines.emplace(LineKey{device, stream}, line).first;
    const bool has_gate = device->gates->TryShare(&line->gate);
    if (has_gate && ServeInThread(line)) return line;
    all.lines.erase(it);
    if (!has_gate) continue;
    device->gates->GiveBack(line->gate);
    return nullptr;
  }
}

void Leave(Line& line) {
  MutexLock lock(All().mutex);
  --line.submitters;
  line.changed.NotifyOne();
}

}  // namespace

CUresult EnqueueHostFunction(const Current& current, uint32_t stream, std::function<void(CUresult)> function,
                             bool takes_turn) {
  Channel& channel = *current.channel;
  const auto line = Join(current.device, stream);
  if (line == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const struct Submitter {
    Line& line;
    ~Submitter() { Leave(line); }
  } submitter{*line};
  Gates& gates = *current.device->gates;
  std::list<Pending> mine;
  mine.push_back({std::make_shared<EventRecord>(), gates.Make(), std::move(function), takes_turn});
  Command commands[] = {{.stream = stream}, {.stream = stream}};
  // The order of the line is the order of the stream. Nothing is taken before its place in the stream is certain: what
  // waits for that keeps no slot from others.
  const auto submitting = [&] {
    Pending& next = mine.front();
    if (!gates.TryTake(next.reached, line->gate, &next.gate)) return false;
    commands[0] = next.reached->In(VGPU_OP_EVENT_RECORD, stream);
    commands[1] = next.gate.WaitIn(stream);
    MutexLock lock(All().mutex);
    line->pending.splice(line->pending.end(), mine);
    return true;
  };
  if (takes_turn) channel.turns().Begin();
  CUresult error = CUDA_SUCCESS;
  do {
    error = channel.PostTogether(commands, submitting);
  } while (error == CUDA_ERROR_NOT_READY && (error = gates.AwaitFree()) == CUDA_SUCCESS);
  if (takes_turn && error != CUDA_SUCCESS) channel.turns().End();
  return error;
}

NodeWork HostWork(const CUDA_HOST_NODE_PARAMS_st& host) {
  const auto call = [host](CUresult status) {
    if (status == CUDA_SUCCESS) host.fn(host.userData);
  };
  return {[call](const Current& at, uint32_t stream) { return EnqueueHostFunction(at, stream, call); }, host};
}

}  // namespace vgpud::cuda

namespace {

using namespace vgpud::cuda;

using HostFunction = void (*)(void* data);
using Callback = void (*)(CUstream stream, CUresult status, void* data);

// Host functions are not called in a context that has failed, callbacks are told of it (cuda.h).
CUresult LaunchHost(DefaultStream mode, CUstream stream, HostFunction function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  NodeWork work = HostWork({function, data});
  if (const InCapture capture = Capturing(place.current, place.stream))
    return capture.Add(place.current, CU_GRAPH_NODE_TYPE_HOST, std::move(work));
  return work.submit(place.current, place.stream);
}
CUresult AddCallback(DefaultStream mode, CUstream stream, Callback callback, void* data, unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (const CUresult error = RefuseInCapture(place.current, place.stream)) return error;
  return EnqueueHostFunction(place.current, place.stream, [=](CUresult status) { callback(stream, status, data); });
}

}  // namespace
CU_TWINS(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, LaunchHost, (CUstream stream, HostFunction function, void* data),
         (stream, function, data))
CU_TWINS(cuStreamAddCallback, cuStreamAddCallback_ptsz, AddCallback,
         (CUstream stream, Callback callback, void* data, unsigned flags), (stream, callback, data, flags))
