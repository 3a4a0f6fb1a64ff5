// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/turn_grid.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "gpu/cuda/cuda_grid.h"

namespace vgpud::driver {

TurnGrid::TurnGrid(const TurnHouse& house, const Kernel& kernel, const LaunchShape& shape,
                   std::span<const std::byte> params, std::optional<SlotRoom> room, uint32_t slots)
    : house_(house),
      kernel_(kernel),
      shape_(shape),
      params_(params.begin(), params.end()),
      turns_(kernel.in_turns->plan, shape.grid, shape.block[0] * shape.block[1] * shape.block[2], shape.dynamic_shared,
             room ? slots : 0),
      room_(room) {
  params_.resize(kernel.in_turns->plan.turn_offset + sizeof(rewrite::Turn));
}

GpuResult<void> TurnGrid::Prepare() {
  const InTurns& in_turns = *kernel_.in_turns;
  house_.card.Bind();
  if (shape_.dynamic_shared > in_turns.dynamic_shared_set) {
    const Status set = house_.card.api().FuncSetAttribute(in_turns.handle, FunctionAttribute::kMaxDynamicShared,
                                                          static_cast<int>(shape_.dynamic_shared));
    if (set != kOk) return tl::unexpected(KernelFailed(house_.card, set, kernel_, "dynamic shared memory"));
    in_turns.dynamic_shared_set = shape_.dynamic_shared;
  }
  control_ = room_ ? room_->address : TRY(house_.stops.TakeControl());
  return {};
}

GpuResult<std::unique_ptr<GpuGrid>> TurnGrid::Launch(const TurnHouse& house, const Kernel& kernel,
                                                     const LaunchShape& shape, std::span<const std::byte> params,
                                                     std::optional<SlotRoom> room, uint32_t slots,
                                                     const std::optional<Place>& place) {
  std::unique_ptr<TurnGrid> grid(new TurnGrid(house, kernel, shape, params, room, slots));
  TRY(grid->Prepare());
  TRY(grid->Begin(place));
  return grid;
}

TurnGrid::~TurnGrid() {
  if (runs_) {
    house_.stops.Raise();
    house_.card.Bind();
    Abandon();
  }
  if (room_) {
    house_.rooms.GiveBack(*room_);
  } else if (control_ != 0) {
    house_.stops.GiveBackControl(control_);
  }
}

// What was begun may still write to its control words and its room: they go with the context.
void TurnGrid::Abandon() {
  house_.lanes.Abandon(std::move(lane_));
  if (room_) house_.rooms.Abandon(*room_);
  room_.reset();
  control_ = 0;
}

// Only the counters where the rest is there from the launch before. Nothing in here may wait for what is on the lane,
// as a copy from memory that the driver does not know does.
Status TurnGrid::WriteControl(bool behind) {
  const Api& api = house_.card.api();
  size_t words = launch_.control.size();
  if (room_) {
    const size_t there = std::exchange(room_->control_words, turns_.left_in_the_middle() == 0 ? words : 0);
    if (there == words && turns_.left_in_the_middle() == 0) words = sizeof(rewrite::Control) / 4;
  }
  if (words == sizeof(rewrite::Control) / 4) return api.MemsetD32Async(control_, 0, words, lane_.stream());
  if (!behind) return api.MemcpyHtoDAsync(control_, launch_.control.data(), 4 * words, lane_.stream());
  const auto copies = house_.lanes.copies();
  if (!copies) return static_cast<Status>(copies.error().status);
  const Status status = api.MemcpyHtoDAsync(control_, launch_.control.data(), 4 * words, *copies);
  return status == kOk ? api.StreamSynchronize(*copies) : status;
}

// Only the counters where nobody was told to leave: then nobody has. Others may be behind it on its lane.
Status TurnGrid::ReadControl() {
  std::vector<uint32_t>& control = launch_.control;
  size_t words = control.size();
  if (!house_.stops.told_since(launch_.turn.expected)) {
    std::fill(control.begin(), control.end(), 0);
    words = sizeof(rewrite::Control) / 4;
  } else if (room_) {
    room_->control_words = 0;
  }
  const auto copies = house_.lanes.copies();
  if (!copies) return static_cast<Status>(copies.error().status);
  Status status = house_.card.api().MemcpyDtoHAsync(control.data(), control_, 4 * words, *copies);
  if (status == kOk) status = house_.card.api().StreamSynchronize(*copies);
  return status;
}

GpuResult<void> TurnGrid::Begin(const std::optional<Place>& place) {
  const Api& api = house_.card.api();
  launch_ = turns_.Next();
  rewrite::Turn& turn = launch_.turn;
  turn.stop_word = house_.stops.word();
  turn.control = control_;
  if (room_) turn.saved = control_ + turns_.control_bytes();
  lane_ = TRY(place ? house_.lanes.TakeBehind(place->lane) : house_.lanes.Take());
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
  config.stream = lane_.stream();
  Status status = WriteControl(place.has_value());
  if (status == kOk) status = api.LaunchKernelEx(&config, kernel_.in_turns->handle, nullptr, extra);
  if (status == kOk) status = api.EventRecord(lane_.done, lane_.stream());
  if (status != kOk) {
    Abandon();
    return tl::unexpected(KernelFailed(house_.card, status, kernel_, "launch"));
  }
  runs_ = true;
  launched_ns_ = MonotonicNs();
  waits_ = house_.lanes.waits;
  return {};
}

GpuResult<void> TurnGrid::End(Status status) {
  runs_ = false;
  if (status == kOk) status = ReadControl();
  house_.printed.Collect();
  if (status != kOk) {
    Abandon();
    return tl::unexpected(KernelFailed(house_.card, status, kernel_, "kernel"));
  }
  const uint64_t ended_ns = MonotonicNs(), begun_ns = std::max(launched_ns_, lane_.on->ended_ns);
  lane_.on->ended_ns = ended_ns;
  const bool at_once = launch_.turn.blocks == turns_.blocks() && waits_ == house_.lanes.waits;
  house_.lanes.GiveBack(std::move(lane_));
  TRY(turns_.Note(launch_, launch_.control));
  if (at_once && turns_.done()) kernel_.length.Note(ended_ns - begun_ns, turns_.blocks());
  Ends& ends = house_.lanes.ends;
  const bool on_gpu = launch_.control.front() != 0;  // one that is behind another may not have begun
  if (!turns_.done() && on_gpu && house_.stops.told_since(launch_.turn.expected))
    ++(turns_.left_in_the_middle() != 0 ? ends.by_safepoints : ends.by_blocks);
  return {};
}

// What is behind it begins when its launch has ended. That is when all of it has, unless it was told to leave; but then
// what is behind it has been told the same.
std::optional<Place> TurnGrid::Behind() const {
  const bool whole = turns_.begun() + launch_.turn.blocks == turns_.blocks();
  if (!runs_ || !whole || house_.stops.told_since(launch_.turn.expected)) return std::nullopt;
  return Place{lane_, launch_.turn.expected};
}

bool TurnGrid::FollowAgain(const Place& place) {
  if (failed_) return false;
  if (runs_) {
    if (!house_.stops.told_since(launch_.turn.expected)) return true;
    const Status status = house_.card.api().EventQuery(lane_.done);
    if (status == kNotReady) return false;
    if (auto ended = End(status); !ended) failed_ = ended.error();
    if (failed_ || turns_.done()) return false;
  }
  if (auto begun = Begin(place); !begun) failed_ = begun.error();
  return !failed_;
}

GpuResult<GpuGrid::Progress> TurnGrid::Run(const StopWord& stop, uint64_t) {
  house_.card.Bind();
  if (failed_) return tl::unexpected(*failed_);
  if (!runs_) {
    if (turns_.done()) return Progress::kDone;
    if (stop.Stopped()) return Progress::kStopped;
    TRY(Begin({}));
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
