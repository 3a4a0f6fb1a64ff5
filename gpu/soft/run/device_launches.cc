// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/device_launches.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "gpu/soft/run/launch_check.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kParamAlignment = 64;
constexpr uint64_t kPerLaunch = 512;  // bytes that the host keeps

}  // namespace

DeviceError DeviceLaunches::Refuse(DeviceError error) {
  last_error_ = error;
  return error;
}

uint64_t DeviceLaunches::Prepare(const CodeFunction* function, const LaunchShape& shape) {
  MutexLock lock(mutex_);
  if (function == nullptr) return Refuse(DeviceError::kInvalidDeviceFunction), 0;
  if (!CheckLaunch(device_.capability, *function, shape)) return Refuse(DeviceError::kInvalidConfiguration), 0;
  if (!device_.memory.Tolerates(kPerLaunch)) return Refuse(DeviceError::kMemoryAllocation), 0;
  if (pending_ == kMostPending) return Refuse(DeviceError::kPendingCountExceeded), 0;
  const uint64_t address = device_.heap.Allocate(std::max(function->info.param_bytes, 1u), kParamAlignment);
  if (address == 0) return Refuse(DeviceError::kMemoryAllocation), 0;
  // A kernel that freed a buffer itself gets the same address again.
  pending_ += prepared_.insert_or_assign(address, DeviceLaunch{function, shape, address}).second;
  return address;
}

DeviceError DeviceLaunches::Add(uint64_t buffer, uint64_t stream) {
  MutexLock lock(mutex_);
  const auto it = prepared_.find(buffer);
  if (it == prepared_.end()) return Refuse(DeviceError::kInvalidValue);
  (stream == kTailStream ? tail_ : added_).push_back(it->second);
  prepared_.erase(it);
  return DeviceError::kSuccess;
}

DeviceError DeviceLaunches::LastError(bool forget) {
  MutexLock lock(mutex_);
  return forget ? std::exchange(last_error_, DeviceError::kSuccess) : last_error_;
}

std::deque<DeviceLaunch> DeviceLaunches::Take() {
  MutexLock lock(mutex_);
  std::deque<DeviceLaunch> all = std::exchange(added_, {});
  std::move(tail_.begin(), tail_.end(), std::back_inserter(all));
  tail_.clear();
  return all;
}

std::vector<std::byte> DeviceLaunches::TakeParams(const DeviceLaunch& launch) {
  MutexLock lock(mutex_);
  --pending_;
  std::vector<std::byte> params(launch.function->info.param_bytes);
  if (!params.empty()) std::memcpy(params.data(), device_.arena.Host(GpuVa{launch.params}), params.size());
  device_.heap.Free(launch.params);
  return params;
}

}  // namespace vgpud::soft
