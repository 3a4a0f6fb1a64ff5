// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/marker.h"

namespace vgpud::cuda {

std::shared_ptr<Marker> Marker::Make(Device* device) {
  std::lock_guard lock(device->mutex);
  if (device->free_event_slots.empty()) return nullptr;
  const uint32_t slot = device->free_event_slots.back();
  device->free_event_slots.pop_back();
  return std::shared_ptr<Marker>(new Marker(device, slot));
}

Marker::~Marker() {
  std::lock_guard lock(device_->mutex);
  device_->free_event_slots.push_back(slot_);
}

uint64_t Marker::Promise() {
  std::lock_guard lock(device_->mutex);
  return ++device_->event_generation[slot_];
}

CUresult Marker::RecordPromised(Channel& channel, uint32_t stream, uint64_t generation) const {
  Command command;
  command.op = VGPU_OP_EVENT_RECORD;
  command.stream = stream;
  command.args[0] = slot_;
  command.args[1] = generation;
  return channel.Post(command);
}

CUresult Marker::Record(const Current& current, uint32_t stream) {
  const uint64_t generation = Promise();
  generation_.store(generation);
  return RecordPromised(*current.channel, stream, generation);
}

CUresult Marker::Hold(const Current& current, uint32_t stream) const {
  if (!recorded() || epoch_ != device_->epoch.load()) return CUDA_SUCCESS;
  Command command;
  command.op = VGPU_OP_EVENT_WAIT;
  command.stream = stream;
  command.args[0] = slot_;
  command.args[1] = generation_.load();
  return current.channel->Post(command);
}

bool Marker::Reached() const {
  return epoch_ != device_->epoch.load() || device_->channel->EventReached(slot_, generation_.load());
}

CUresult Marker::Wait() const {
  if (epoch_ != device_->epoch.load()) return CUDA_SUCCESS;
  return device_->channel->WaitEvent(slot_, generation_.load());
}

}  // namespace vgpud::cuda
