// SPDX-License-Identifier: Apache-2.0
// What a conditional node does: a host function that reads the condition when the node's turn comes, and launches
// graphs in a stream of the node's own, while the stream of the launch waits for the function to return.
#include "guest-driver-shim/libcuda/launch/conditional_node.h"

#include <optional>
#include <utility>

#include "guest-driver-shim/libcuda/graph/conditional.h"
#include "guest-driver-shim/libcuda/graph/lanes.h"
#include "guest-driver-shim/libcuda/launch/host_function.h"
#include "guest-driver-shim/libcuda/launch/submit.h"

namespace vgpud::cuda {
namespace {

// Made when it is needed first.
struct OwnStream {
  Mutex mutex{lock_rank::kConditional};  // held for a whole turn of the node
  Device* device GUARDED_BY(mutex) = nullptr;
  uint64_t epoch GUARDED_BY(mutex) = 0;
  uint32_t number GUARDED_BY(mutex) = 0;

  OwnStream() = default;
  OwnStream(const OwnStream&) = delete;
  ~OwnStream() {
    if (device != nullptr && epoch == device->epoch.load() && Driver::Get().Ready() == CUDA_SUCCESS)
      DestroyStreamNumber(device, number);
  }
  CUresult Make(const Current& at) REQUIRES(mutex) {
    if (device != nullptr && epoch == at.device->epoch.load()) return CUDA_SUCCESS;
    if (const CUresult error = CreateStreamNumber(at.device, CU_STREAM_NON_BLOCKING, 0, &number)) return error;
    device = at.device;
    epoch = at.device->epoch.load();
    return CUDA_SUCCESS;
  }
};

// Which graph is launched, if any is.
std::optional<size_t> Choose(int type, uint32_t value, size_t graphs) {
  if (type == CU_GRAPH_COND_TYPE_SWITCH) return value < graphs ? std::optional<size_t>(value) : std::nullopt;
  if (value != 0) return 0;
  return graphs == 2 ? std::optional<size_t>(1) : std::nullopt;
}

CUresult Turn(const Current& at, OwnStream& own, const Condition& condition, int type, const Bodies& bodies) {
  MutexLock lock(own.mutex);
  if (const CUresult error = own.Make(at)) return error;
  do {
    uint32_t value = 0;
    Command read;
    read.op = VGPU_OP_COPY_OUT;
    read.stream = own.number;
    read.args[0] = condition.address;
    const Completion done = at.channel->Call(read, {}, std::as_writable_bytes(std::span(&value, 1)));
    if (done.status != CUDA_SUCCESS) return done.status;
    const auto chosen = Choose(type, value, bodies.size());
    if (!chosen) return CUDA_SUCCESS;
    const Body& body = *bodies[*chosen];
    if (const CUresult error = body.lanes->Submit(at, own.number, body.nodes)) return error;
    if (const CUresult error = SyncStream(at, own.number)) return error;
  } while (type == CU_GRAPH_COND_TYPE_WHILE);
  return CUDA_SUCCESS;
}

bool IsSize(int type, unsigned size) {
  if (type == CU_GRAPH_COND_TYPE_IF) return size == 1 || size == 2;
  if (type == CU_GRAPH_COND_TYPE_WHILE) return size == 1;
  constexpr unsigned kMostGraphs = 65536;
  return type == CU_GRAPH_COND_TYPE_SWITCH && size >= 1 && size <= kMostGraphs;
}

}  // namespace

CUresult ConditionalWork(const Current& current, CUDA_CONDITIONAL_NODE_PARAMS* wanted, NodeWork* out) {
  const auto condition = FindCondition(wanted->handle);
  if (condition == nullptr || condition->device != current.device || condition->epoch != current.device->epoch.load() ||
      !IsSize(wanted->type, wanted->size) || condition->taken.exchange(true)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto params = std::make_shared<ConditionalParams>();
  params->condition = condition;
  for (unsigned i = 0; i < wanted->size; ++i) {
    params->graphs.push_back(Embed({}));
    params->handles.push_back(params->graphs.back()->graph->handle);
  }
  params->launching = [condition, type = wanted->type](Bodies bodies) -> GraphWork {
    return [condition, type, own = std::make_shared<OwnStream>(), bodies = std::move(bodies)](const Current& at,
                                                                                              uint32_t stream) {
      return EnqueueHostFunction(
          at, stream,
          [at, own, condition, type, bodies](CUresult status) {
            if (status != CUDA_SUCCESS) return;
            if (const CUresult error = Turn(at, *own, *condition, type, bodies)) at.channel->LeavePostedError(error);
          },
          true);
    };
  };
  wanted->phGraph_out = params->handles.data();
  out->params = params;
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda
