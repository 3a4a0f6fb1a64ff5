// SPDX-License-Identifier: Apache-2.0
// Markers: a slot in the channel memory and a generation that grows with each record.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

// A place in a stream that can be waited for; its slot goes back to the device when it is destroyed.
class Marker {
 public:
  // nullptr when all slots of the channel are in use.
  static std::shared_ptr<Marker> Make(Device* device);
  ~Marker();

  // Marks "here" in the stream.
  CUresult Record(const Current& current, uint32_t stream);
  // The stream goes on only after the latest record.
  CUresult Hold(const Current& current, uint32_t stream) const;
  // A generation that later work may wait for before it is recorded (by RecordPromised).
  uint64_t Promise();
  CUresult RecordPromised(Channel& channel, uint32_t stream, uint64_t generation) const;

  bool recorded() const { return generation_.load() != 0; }
  bool Reached() const;
  CUresult Wait() const;
  uint64_t time_ns() const { return device_->channel->EventTime(slot_); }
  Device* device() const { return device_; }

 private:
  Marker(Device* device, uint32_t slot) : device_(device), slot_(slot), epoch_(device->epoch.load()) {}
  Device* const device_;
  const uint32_t slot_;
  const uint64_t epoch_;
  std::atomic<uint64_t> generation_{0};  // of the latest record
};

}  // namespace vgpud::cuda
