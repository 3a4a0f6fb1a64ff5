// SPDX-License-Identifier: Apache-2.0
// Markers: places in streams that can be waited for.
#pragma once

#include <functional>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// Where it was recorded last. Any thread.
class Marker {
 public:
  static std::shared_ptr<Marker> Make(Device* device) { return std::make_shared<Marker>(device); }
  explicit Marker(Device* device) : device_(device) {}

  // Marks "here" in the stream.
  CUresult Record(const Current& current, uint32_t stream);
  // The stream, of the same device, goes on only after the latest record.
  CUresult Hold(const Current& current, uint32_t stream) const;
  // A function that waits for what is the latest record now, and says nothing of how that ended; none: there is no
  // record.
  std::function<void()> WaitForThis() const;

  bool recorded() const { return latest() != nullptr; }
  // Of the latest record: has it been reached, waiting until it has, and when that was (host clock). Without a record:
  // yes, not at all, 0.
  bool Reached() const;
  CUresult Wait() const;
  uint64_t time_ns() const;
  Device* device() const { return device_; }

 private:
  std::shared_ptr<EventRecord> latest() const;

  Device* const device_;
  mutable Mutex mutex_{lock_rank::kMarker};
  std::shared_ptr<EventRecord> latest_ GUARDED_BY(mutex_);
};

}  // namespace vgpud::cuda
