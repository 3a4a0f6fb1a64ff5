// SPDX-License-Identifier: Apache-2.0
// How a launch by a kernel that has not begun is written out and read back.
#pragma once

#include <unordered_map>

#include "gpu/soft/run/device_launches.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {

class LaunchCodec {
 public:
  // For launches of kernels of `program`, whose parameters lie on the heap of `device`; both outlive the codec.
  LaunchCodec(const Program& program, const DeviceState& device);
  void Put(StateWriter& out, const DeviceLaunch& launch) const;
  // One that can run: its kernel exists, can be launched in that shape, and its parameters lie on the heap. After an
  // error: nothing that may be used.
  DeviceLaunch Get(StateReader& in) const;

 private:
  const Program& program_;
  const DeviceHeap& heap_;
  const ComputeCapability& capability_;
  std::unordered_map<const CodeFunction*, uint64_t> index_;
};

}  // namespace vgpud::soft
