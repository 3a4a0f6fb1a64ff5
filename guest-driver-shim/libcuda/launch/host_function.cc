// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/launch/host_function.h"

#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "guest-driver-shim/libcuda/driver/marker.h"
#include "guest-driver-shim/libcuda/driver/streams.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace vgpud::cuda {
namespace {

struct Pending {
  std::shared_ptr<Marker> reached;
  uint64_t epoch;
  uint64_t generation;  // of the gate
  std::function<void(CUresult)> function;
};

// The host functions of one stream. A thread works while there are any, so that streams never wait for each other.
struct Line {
  Device* device;
  uint32_t gate;
  std::deque<Pending> pending;
};

struct State {
  std::mutex mutex;
  std::map<std::pair<Device*, uint32_t>, std::shared_ptr<Line>> lines;  // those with work
  std::map<Device*, std::vector<uint32_t>> free_gates;
  std::map<std::pair<Device*, uint32_t>, uint64_t> generation;  // last one given out per gate
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

void Work(std::pair<Device*, uint32_t> key, const std::shared_ptr<Line>& line) {
  State& state = TheState();
  std::unique_lock lock(state.mutex);
  while (!line->pending.empty()) {
    Pending next = std::move(line->pending.front());
    line->pending.pop_front();
    lock.unlock();
    const CUresult status = next.reached->Wait();
    next.function(next.epoch == line->device->epoch.load() ? status : CUDA_ERROR_CONTEXT_IS_DESTROYED);
    // What it holds, memory or streams of the device, goes before anybody who waits for the stream comes back: the next
    // thing may be a reset of the context, which has none of that any more.
    next.function = nullptr;
    line->device->channel->OpenGate(line->gate, next.generation);
    lock.lock();
  }
  state.free_gates[line->device].push_back(line->gate);
  state.lines.erase(key);
}

// The stream's line, new with a thread of its own if it has none. nullptr when all gates are in use.
std::shared_ptr<Line> LineOf(State& state, std::pair<Device*, uint32_t> key, bool* fresh) {
  if (const auto it = state.lines.find(key); it != state.lines.end()) return it->second;
  auto [gates, first_use] = state.free_gates.try_emplace(key.first);
  if (first_use)
    for (uint32_t gate = 0; gate < VGPU_GATES; ++gate) gates->second.push_back(gate);
  if (gates->second.empty()) return nullptr;
  auto line = std::make_shared<Line>(Line{key.first, gates->second.back(), {}});
  gates->second.pop_back();
  *fresh = true;
  return line;
}

}  // namespace

CUresult EnqueueHostFunction(const Current& current, uint32_t stream, std::function<void(CUresult)> function) {
  auto reached = Marker::Make(current.device);
  if (reached == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  State& state = TheState();
  const std::pair key{current.device, stream};
  // Held to the end: the order of the line is the order of the stream.
  std::lock_guard lock(state.mutex);
  bool fresh = false;
  const auto line = LineOf(state, key, &fresh);
  if (line == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t generation = state.generation[{current.device, line->gate}] + 1;
  CUresult error = reached->Record(current, stream);
  if (error == CUDA_SUCCESS) {
    Command wait;
    wait.op = VGPU_OP_GATE_WAIT;
    wait.stream = stream;
    wait.args[0] = line->gate;
    wait.args[1] = generation;
    error = current.channel->Post(wait);
  }
  if (error != CUDA_SUCCESS) {
    if (fresh) state.free_gates[current.device].push_back(line->gate);
    return error;
  }
  state.generation[{current.device, line->gate}] = generation;
  line->pending.push_back({std::move(reached), current.device->epoch.load(), generation, std::move(function)});
  if (fresh) {
    state.lines[key] = line;
    std::thread(Work, key, line).detach();
  }
  return CUDA_SUCCESS;
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
