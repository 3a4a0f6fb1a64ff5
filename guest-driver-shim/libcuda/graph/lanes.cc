// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph/lanes.h"

#include <algorithm>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/body.h"

namespace vgpud::cuda {
namespace {

constexpr uint32_t kMostLanes = 16;  // more branches share these

CUresult Run(const Current& current, uint32_t stream, const GraphNode& node) {
  if (!node.enabled) return CUDA_SUCCESS;
  if (node.body != nullptr) return node.body->lanes->Submit(current, stream, node.body->nodes);
  if (node.work.submit == nullptr) return CUDA_SUCCESS;
  if (node.work.epoch != current.device->epoch.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return node.work.submit(current, stream);
}

}  // namespace

Lanes::Lanes(const NodeList& nodes) : steps_(nodes.size()) {
  std::map<CUgraphNode, size_t> index;
  for (size_t n = 0; n < nodes.size(); ++n) {
    index[nodes[n]->handle] = n;
    std::vector<size_t> before;
    for (const CUgraphNode handle : nodes[n]->after)
      if (const auto it = index.find(handle); it != index.end()) before.push_back(it->second);
    // Behind the first that nobody has gone on from yet, else in a new lane.
    const auto next = std::find_if(before.begin(), before.end(),
                                   [&](size_t earlier) NO_THREAD_SAFETY_ANALYSIS {  // of nobody else yet
                                     return last_[steps_[earlier].lane] == earlier;
                                   });
    Step& step = steps_[n];
    step.lane = next != before.end()        ? steps_[*next].lane
                : last_.size() < kMostLanes ? static_cast<uint32_t>(last_.size())
                                            : static_cast<uint32_t>(n % kMostLanes);
    if (step.lane == last_.size()) last_.push_back(n);
    last_[step.lane] = n;
    for (const size_t earlier : before) {
      if (steps_[earlier].lane == step.lane) continue;
      step.waits.push_back(earlier);
      steps_[earlier].awaited = true;
    }
  }
  count_ = std::max<uint32_t>(1, static_cast<uint32_t>(last_.size()));
  for (uint32_t lane = 1; lane < count_; ++lane) steps_[last_[lane]].awaited = true;
}

// Nobody else has it any more.
Lanes::~Lanes() NO_THREAD_SAFETY_ANALYSIS { Drop(); }

void Lanes::Drop() {
  if (device_ != nullptr && epoch_ == device_->epoch.load() && Driver::Get().Ready() == CUDA_SUCCESS)
    for (size_t lane = 1; lane < streams_.size(); ++lane) DestroyStreamNumber(device_, streams_[lane]);
  streams_.clear();
  begin_ = end_ = nullptr;
  for (Step& step : steps_) step.done = nullptr;
}

bool Lanes::Prepare(const Current& current) {
  if (device_ != current.device || epoch_ != current.device->epoch.load()) {
    Drop();
    device_ = current.device;
    epoch_ = current.device->epoch.load();
  }
  if (end_ == nullptr) end_ = Marker::Make(device_);
  if (count_ == 1) return false;
  if (begin_ == nullptr) begin_ = Marker::Make(device_);
  for (Step& step : steps_)
    if (step.awaited && step.done == nullptr) step.done = Marker::Make(device_);
  if (streams_.empty()) streams_.push_back(0);
  while (streams_.size() < count_) {
    uint32_t number;
    if (CreateStreamNumber(device_, CU_STREAM_NON_BLOCKING, 0, &number) != CUDA_SUCCESS) return false;
    streams_.push_back(number);
  }
  return true;
}

CUresult Lanes::SubmitSteps(const Current& current, const NodeList& nodes) {
  if (const CUresult error = begin_->Record(current, streams_[0])) return error;
  for (uint32_t lane = 1; lane < count_; ++lane)
    if (const CUresult error = begin_->Hold(current, streams_[lane])) return error;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Step& step = steps_[n];
    const uint32_t stream = streams_[step.lane];
    for (const size_t earlier : step.waits)
      if (const CUresult error = steps_[earlier].done->Hold(current, stream)) return error;
    if (const CUresult error = Run(current, stream, *nodes[n])) return error;
    if (!step.awaited) continue;
    if (const CUresult error = step.done->Record(current, stream)) return error;
  }
  for (uint32_t lane = 1; lane < count_; ++lane)
    if (const CUresult error = steps_[last_[lane]].done->Hold(current, streams_[0])) return error;
  return CUDA_SUCCESS;
}

CUresult Lanes::Submit(const Current& current, uint32_t stream, const NodeList& nodes) {
  MutexLock lock(mutex_);
  const bool apart = Prepare(current);
  if (end_->recorded() && last_stream_ != stream)
    if (const CUresult error = end_->Hold(current, stream)) return error;
  if (apart) {
    streams_[0] = stream;
    if (const CUresult error = SubmitSteps(current, nodes)) return error;
  } else {
    for (const auto& node : nodes)
      if (const CUresult error = Run(current, stream, *node)) return error;
  }
  last_stream_ = stream;
  return end_->Record(current, stream);
}

}  // namespace vgpud::cuda
