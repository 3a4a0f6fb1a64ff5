// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/turn_grid.h"

#include <algorithm>
#include <cstring>

#include "gpu/cuda/cuda_grid.h"

namespace vgpud::driver {

TurnGrid::TurnGrid(const TurnHouse& house, const Kernel& kernel, const LaunchShape& shape,
                   std::span<const std::byte> params, DevicePtr control)
    : house_(house),
      kernel_(kernel),
      shape_(shape),
      params_(params.begin(), params.end()),
      turns_(kernel.in_turns->plan, shape.grid, shape.block[0] * shape.block[1] * shape.block[2], shape.dynamic_shared,
             0),
      control_(control) {
  params_.resize(kernel.in_turns->plan.turn_offset + sizeof(rewrite::Turn));
}

GpuResult<std::unique_ptr<GpuGrid>> TurnGrid::Launch(const TurnHouse& house, const Kernel& kernel,
                                                     const LaunchShape& shape, std::span<const std::byte> params,
                                                     uint32_t most_dynamic_shared) {
  TRY(CheckLaunch(kernel, shape, params, most_dynamic_shared));
  house.card.Bind();
  const InTurns& in_turns = *kernel.in_turns;
  if (shape.dynamic_shared > in_turns.dynamic_shared_set) {
    const Status set = house.card.api().FuncSetAttribute(in_turns.handle, FunctionAttribute::kMaxDynamicShared,
                                                         static_cast<int>(shape.dynamic_shared));
    if (set != kOk) return tl::unexpected(KernelFailed(house.card, set, kernel, "dynamic shared memory"));
    in_turns.dynamic_shared_set = shape.dynamic_shared;
  }
  const DevicePtr control = TRY(house.stops.TakeControl());
  std::unique_ptr<TurnGrid> grid(new TurnGrid(house, kernel, shape, params, control));
  TRY(grid->Begin());
  return grid;
}

TurnGrid::~TurnGrid() {
  if (!runs_) {
    if (control_ != 0) house_.stops.GiveBackControl(control_);
    return;
  }
  // The kernel may still write to its control words: they go with the context.
  house_.stops.Raise();
  house_.card.Bind();
  house_.lanes.Abandon(lane_);
}

GpuResult<void> TurnGrid::Begin() {
  const Api& api = house_.card.api();
  launch_ = turns_.Next();
  rewrite::Turn& turn = launch_.turn;
  turn.stop_word = house_.stops.word();
  turn.control = control_;
  lane_ = TRY(house_.lanes.Take());
  turn.expected = house_.stops.Begin();
  std::memcpy(params_.data() + kernel_.in_turns->plan.turn_offset, &turn, sizeof turn);
  size_t bytes = params_.size();
  void* extra[] = {reinterpret_cast<void*>(kParamBuffer), params_.data(), reinterpret_cast<void*>(kParamBufferBytes),
                   &bytes, reinterpret_cast<void*>(kParamEnd)};
  LaunchConfig config{};
  config.grid[0] = launch_.blocks;
  config.grid[1] = config.grid[2] = 1;
  std::copy_n(shape_.block, 3, config.block);
  config.dynamic_shared = shape_.dynamic_shared;
  config.stream = lane_.stream;
  Status status = api.MemcpyHtoD(control_, launch_.control.data(), 4 * launch_.control.size(), lane_.stream);
  if (status == kOk) status = api.LaunchKernelEx(&config, kernel_.in_turns->handle, nullptr, extra);
  if (status == kOk) status = api.EventRecord(lane_.done, lane_.stream);
  if (status != kOk) {
    house_.lanes.Abandon(lane_);
    control_ = 0;  // what was begun may still write to it
    return tl::unexpected(KernelFailed(house_.card, status, kernel_, "launch"));
  }
  runs_ = true;
  return {};
}

GpuResult<void> TurnGrid::End(Status status) {
  runs_ = false;
  const Api& api = house_.card.api();
  std::vector<uint32_t>& control = launch_.control;
  if (status == kOk) status = api.MemcpyDtoH(control.data(), control_, 4 * control.size(), lane_.stream);
  if (status == kOk) status = api.StreamSynchronize(lane_.stream);
  house_.printed.Collect();
  if (status != kOk) {
    house_.lanes.Abandon(lane_);
    return tl::unexpected(KernelFailed(house_.card, status, kernel_, "kernel"));
  }
  house_.lanes.GiveBack(lane_);
  TRY(turns_.Note(launch_, control));
  if (!turns_.done()) ++house_.lanes.ends.by_blocks;
  return {};
}

GpuResult<GpuGrid::Progress> TurnGrid::Run(const StopWord& stop, uint64_t) {
  house_.card.Bind();
  if (!runs_) {
    if (stop.Stopped()) return Progress::kStopped;
    TRY(Begin());
  }
  const Api& api = house_.card.api();
  Status status = wait_.Await(api, lane_.done, stop);
  if (status == kNotReady) {
    if (!stop.Stopped()) return Progress::kYield;
    house_.stops.Raise();
    status = api.EventSynchronize(lane_.done);
  }
  TRY(End(status));
  if (turns_.done()) return Progress::kDone;
  return stop.Stopped() ? Progress::kStopped : Progress::kYield;
}

}  // namespace vgpud::driver
