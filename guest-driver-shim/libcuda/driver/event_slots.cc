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
  while (!TryTake(record))
    if (const CUresult error = AwaitFree(1)) return error;
  *out = record;
  return CUDA_SUCCESS;
}

bool EventSlots::TryTake(const std::shared_ptr<EventRecord>& record) {
  MutexLock lock(mutex_);
  if (!FindFree(Kept(), 1)) return false;
  record->slot = free_[free_begin_];
  free_begin_ = (free_begin_ + 1) % VGPU_EVENT_SLOTS;
  --free_count_;
  record->generation = ++generation_[record->slot];
  record->epoch = epoch_->load();
  records_[record->slot] = record;
  return true;
}

CUresult EventSlots::AwaitFree(uint32_t count) {
  return channel_->Wait([this, kept = Kept(), count] { return HasFree(kept, count); });
}

void EventSlots::GiveBack(const EventRecord& record) {
  MutexLock lock(mutex_);
  // Not after a reset of the device, which gives all of them back.
  if (records_[record.slot].get() != &record) return;
  Free(record.slot);
}

void EventSlots::Open(const EventRecord& record) {
  MutexLock lock(mutex_);
  // As above: the slot may have another record.
  if (records_[record.slot].get() == &record) channel_->OpenGate(VGPU_SLOT_GATE(record.slot), record.generation);
}

bool EventSlots::HasFree(uint32_t kept, uint32_t count) {
  MutexLock lock(mutex_);
  return FindFree(kept, count);
}

// Slots are given out in turn, so those of the oldest records come first.
bool EventSlots::FindFree(uint32_t kept, uint32_t count) {
  if (free_count_ >= kept + count) return true;
  for (uint32_t looked = 0; looked < VGPU_EVENT_SLOTS && free_count_ < kept + kFreedAtOnce; ++looked) {
    const uint32_t slot = std::exchange(oldest_, (oldest_ + 1) % VGPU_EVENT_SLOTS);
    if (records_[slot] == nullptr || !Reached(*records_[slot])) continue;
    Settle(*records_[slot]);
    Free(slot);
  }
  return free_count_ >= kept + count;
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
