// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/marker.h"

namespace vgpud::cuda {

std::shared_ptr<EventRecord> Marker::latest() const {
  MutexLock lock(mutex_);
  return latest_;
}

CUresult Marker::Record(const Current& current, uint32_t stream) {
  std::shared_ptr<EventRecord> record;
  if (const CUresult error = device_->events->Take(&record)) return error;
  if (const CUresult error = current.channel->Post(record->In(VGPU_OP_EVENT_RECORD, stream))) {
    device_->events->GiveBack(*record);
    return error;
  }
  MutexLock lock(mutex_);
  latest_ = std::move(record);
  return CUDA_SUCCESS;
}

CUresult Marker::Hold(const Current& current, uint32_t stream) const {
  const auto record = latest();
  if (record == nullptr || record->epoch != device_->epoch.load()) return CUDA_SUCCESS;
  return current.channel->Post(record->In(VGPU_OP_EVENT_WAIT, stream));
}

std::function<void()> Marker::WaitForThis() const {
  const auto record = latest();
  if (record == nullptr) return nullptr;
  return [record, events = device_->events.get()] { events->Wait(*record); };
}

bool Marker::Reached() const {
  const auto record = latest();
  return record == nullptr || device_->events->Reached(*record);
}

CUresult Marker::Wait() const {
  const auto record = latest();
  if (record == nullptr) return CUDA_SUCCESS;
  device_->events->Wait(*record);
  device_->channel->PrintOutput();
  return device_->channel->Sticky();
}

uint64_t Marker::time_ns() const {
  const auto record = latest();
  return record != nullptr ? device_->events->Time(*record) : 0;
}

}  // namespace vgpud::cuda
