// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/grid_family.h"

#include <utility>

namespace vgpud::soft {

GridFamily::GridFamily(DeviceState& device, std::unique_ptr<Grid> root, Make make)
    : make_(std::move(make)), launches_(device), current_(std::move(root)) {
  if (current_ != nullptr) current_->SetLaunches(&launches_);
}

uint64_t GridFamily::warp_instructions() const {
  return executed_ + (current_ != nullptr ? current_->warp_instructions() : 0);
}

bool GridFamily::Next() {
  executed_ += current_->warp_instructions();
  current_.reset();
  // The generation whose last member this was is forgotten first: a chain of any length takes no more room.
  while (!waiting_.empty() && waiting_.back().empty()) waiting_.pop_back();
  if (auto children = launches_.Take(); !children.empty()) waiting_.push_back(std::move(children));
  if (waiting_.empty()) return false;
  const DeviceLaunch launch = waiting_.back().front();
  waiting_.back().pop_front();
  current_ = make_(*launch.function, launch.shape, launches_.TakeParams(launch));
  current_->SetLaunches(&launches_);
  return true;
}

GpuResult<GpuGrid::Progress> GridFamily::Run(const StopWord& stop, uint64_t budget) {
  while (current_ != nullptr) {
    const uint64_t before = current_->warp_instructions();
    const auto progress = current_->Run(stop, budget);
    if (!progress || *progress != Progress::kDone) return progress;
    const uint64_t ran = current_->warp_instructions() - before;
    budget -= ran < budget ? ran : budget;
    const bool more = Next();
    if (more && stop.Stopped()) return Progress::kStopped;
    if (more && budget == 0) return Progress::kYield;
  }
  return Progress::kDone;
}

}  // namespace vgpud::soft
