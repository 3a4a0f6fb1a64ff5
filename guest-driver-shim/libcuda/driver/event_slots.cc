// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/event_slots.h"

#include <utility>

namespace vgpud::cuda {

namespace {

// A sweep ends when it has freed so many: what it looked at is paid for by as many records.
constexpr uint32_t kFreedAtOnce = 64;

}  // namespace

EventSlots::EventSlots(Channel* channel, const std::atomic<uint64_t>* epoch) : channel_(channel), epoch_(epoch) {
  for (uint32_t slot = 0; slot < VGPU_EVENT_SLOTS; ++slot) Free(slot);
}

void EventSlots::Free(uint32_t slot) {
  records_[slot] = nullptr;
  free_[(free_begin_ + free_count_++) % VGPU_EVENT_SLOTS] = slot;
}

CUresult EventSlots::Take(std::shared_ptr<EventRecord>* out) {
  lock_check::BeforeWait();
  const auto record = std::make_shared<EventRecord>();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (free_count_ != 0 || Sweep()) {
        record->slot = free_[free_begin_];
        free_begin_ = (free_begin_ + 1) % VGPU_EVENT_SLOTS;
        --free_count_;
        record->generation = generation_[record->slot] + 1;
        record->epoch = epoch_->load();
        records_[record->slot] = record;
        generation_[record->slot] = record->generation;
        *out = record;
        return CUDA_SUCCESS;
      }
    }
    if (const CUresult error = channel_->Wait([this] { return HasFree(); })) return error;
  }
}

void EventSlots::GiveBack(const EventRecord& record) {
  MutexLock lock(mutex_);
  // Not after a reset of the device, which gives all of them back.
  if (records_[record.slot].get() != &record) return;
  Free(record.slot);
}

bool EventSlots::HasFree() {
  MutexLock lock(mutex_);
  return free_count_ != 0 || Sweep();
}

// Slots are given out in turn, so those of the oldest records come first.
bool EventSlots::Sweep() {
  for (uint32_t looked = 0; looked < VGPU_EVENT_SLOTS && free_count_ < kFreedAtOnce; ++looked) {
    const uint32_t slot = std::exchange(oldest_, (oldest_ + 1) % VGPU_EVENT_SLOTS);
    if (records_[slot] == nullptr || !Reached(*records_[slot])) continue;
    Settle(*records_[slot]);
    Free(slot);
  }
  return free_count_ != 0;
}

void EventSlots::Settle(EventRecord& record) {
  if (record.settled.load(std::memory_order_relaxed)) return;
  record.time_ns = channel_->EventTime(record.slot);
  record.settled.store(true, std::memory_order_release);
}

bool EventSlots::Reached(const EventRecord& record) const {
  return record.settled.load(std::memory_order_acquire) || record.epoch != epoch_->load() ||
         channel_->EventReached(record.slot, record.generation);
}

CUresult EventSlots::Wait(const EventRecord& record) const {
  if (record.epoch != epoch_->load()) return CUDA_SUCCESS;
  return channel_->Wait([this, &record] { return Reached(record); });
}

uint64_t EventSlots::Time(EventRecord& record) {
  MutexLock lock(mutex_);
  Settle(record);
  return record.time_ns;
}

}  // namespace vgpud::cuda
