// SPDX-License-Identifier: Apache-2.0
// What a kernel has launched itself (dynamic parallelism): the grids that are to run once its own is done.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/memory/lock_ranks.h"
#include "gpu/soft/run/device_state.h"

namespace vgpud::soft {

class LaunchCodec;  // launch_codec.h
class StateReader;
class StateWriter;

struct DeviceLaunch {
  const CodeFunction* function;
  LaunchShape shape;
  uint64_t params;  // device address of the parameter buffer, on the heap
};

// Numeric values of cudaError_t (driver_types.h): what a kernel's own launch calls return.
enum class DeviceError : uint32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidConfiguration = 9,
  kPendingCountExceeded = 69,
  kInvalidDeviceFunction = 98,
};

// One per grid that the host launched, for it and all its descendants. Thread-safe.
class DeviceLaunches {
 public:
  // Launches that wait at once, in all generations.
  static constexpr size_t kMostPending = 1 << 16;
  // cudaStreamTailLaunch
  static constexpr uint64_t kTailStream = 3;

  explicit DeviceLaunches(DeviceState& device) : device_(device) {}
  // Address of a new buffer for the parameters of such a launch; 0: refused, LastError() says why.
  uint64_t Prepare(const CodeFunction* function, const LaunchShape& shape);
  // Puts the launch that Prepare() returned `buffer` for behind the others.
  DeviceError Add(uint64_t buffer, uint64_t stream);
  // The error of the latest refusal; `forget`: it is asked for once.
  DeviceError LastError(bool forget);

  // What was added since the last call, in the order to run it: tail launches last.
  std::deque<DeviceLaunch> Take();
  // The launch's parameters, its buffer is free again.
  std::vector<std::byte> TakeParams(const DeviceLaunch& launch);

  // family_state.cc; not while a grid of the family runs. Load into fresh ones; `taken` were taken before.
  void Save(StateWriter& out, const LaunchCodec& codec) const;
  void Load(StateReader& in, const LaunchCodec& codec, size_t taken);

 private:
  DeviceError Refuse(DeviceError error) REQUIRES(mutex_);

  DeviceState& device_;
  mutable Mutex mutex_{lock_rank::kLaunches};
  std::map<uint64_t, DeviceLaunch> prepared_ GUARDED_BY(mutex_);
  std::deque<DeviceLaunch> added_ GUARDED_BY(mutex_);
  std::deque<DeviceLaunch> tail_ GUARDED_BY(mutex_);
  size_t pending_ GUARDED_BY(mutex_) = 0;
  DeviceError last_error_ GUARDED_BY(mutex_) = DeviceError::kSuccess;
};

}  // namespace vgpud::soft
