// SPDX-License-Identifier: Apache-2.0
// What a grid that launches others has still to do, written out and read back.
#include "gpu/soft/run/grid_family.h"
#include "gpu/soft/run/launch_codec.h"

namespace vgpud::soft {
namespace {

void PutLaunches(StateWriter& out, const LaunchCodec& codec, const std::deque<DeviceLaunch>& launches) {
  out.Put<uint64_t>(launches.size());
  for (const DeviceLaunch& launch : launches) codec.Put(out, launch);
}

// At most `room` launches, which get fewer by those.
std::deque<DeviceLaunch> GetLaunches(StateReader& in, const LaunchCodec& codec, size_t& room) {
  std::deque<DeviceLaunch> launches;
  const auto count = in.GetUpTo<uint64_t>(room, "number of launches by kernels");
  for (uint64_t n = 0; n < count && in.ok(); ++n) launches.push_back(codec.Get(in));
  room -= count;
  return launches;
}

}  // namespace

void DeviceLaunches::Save(StateWriter& out, const LaunchCodec& codec) const {
  MutexLock lock(mutex_);
  out.Put(last_error_);
  out.Put<uint64_t>(prepared_.size());
  for (const auto& [address, launch] : prepared_) codec.Put(out, launch);
  PutLaunches(out, codec, added_);
  PutLaunches(out, codec, tail_);
}

void DeviceLaunches::Load(StateReader& in, const LaunchCodec& codec, size_t taken) {
  MutexLock lock(mutex_);
  last_error_ = static_cast<DeviceError>(in.Get<uint32_t>());
  size_t room = kMostPending - taken;
  const auto prepared = GetLaunches(in, codec, room);
  added_ = GetLaunches(in, codec, room);
  tail_ = GetLaunches(in, codec, room);
  if (!in.ok()) return;
  for (const DeviceLaunch& launch : prepared)
    if (!prepared_.emplace(launch.params, launch).second)
      return in.Bad("place of the parameters of two launches by kernels", launch.params);
  pending_ = kMostPending - room;
}

void GridFamily::Save(StateWriter& out) const {
  out.Put(executed_);
  if (current_ == nullptr) return;
  const LaunchCodec codec(current_->program(), current_->device());
  // A generation whose last member runs is forgotten in any case.
  uint64_t generations = 0;
  for (const auto& generation : waiting_) generations += !generation.empty();
  out.Put(generations);
  for (const auto& generation : waiting_)
    if (!generation.empty()) PutLaunches(out, codec, generation);
  launches_.Save(out, codec);
}

void GridFamily::Load(StateReader& in) {
  executed_ = in.Get<uint64_t>();
  if (current_ == nullptr) return;
  const LaunchCodec codec(current_->program(), current_->device());
  size_t room = DeviceLaunches::kMostPending;
  const auto generations = in.GetUpTo<uint64_t>(room, "number of generations of launches");
  for (uint64_t n = 0; n < generations && in.ok(); ++n) {
    waiting_.push_back(GetLaunches(in, codec, room));
    if (waiting_.back().empty()) in.Bad("number of launches of a generation", 0);
  }
  launches_.Load(in, codec, DeviceLaunches::kMostPending - room);
}

}  // namespace vgpud::soft
