// SPDX-License-Identifier: Apache-2.0
// The event slots of a channel (uapi/vgpu_abi.h). A record has one from when it is submitted until it has been reached;
// then its time is kept here, and the next record gets the slot. So programs have as many events as they like, and as
// many records on their way as there are slots.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "guest-driver-shim/libcuda/channel/channel.h"

namespace vgpud::cuda {

// A place in a stream.
struct EventRecord {
  uint32_t slot = 0;
  uint64_t generation = 0;  // of the slot: later records in it have higher ones
  uint64_t epoch = 0;       // of the device: what was recorded in an older one is over
  std::atomic<bool> settled{false};
  uint64_t time_ns = 0;  // host clock; when it is settled

  // EVENT_RECORD, EVENT_WAIT: of a stream that reaches the place, or waits for it.
  Command In(uint32_t op, uint32_t stream) const {
    Command command;
    command.op = op;
    command.stream = stream;
    command.args[0] = slot;
    command.args[1] = generation;
    return command;
  }
};

// Any thread.
class EventSlots {
 public:
  // Both outlive it. `epoch`: of the device.
  EventSlots(Channel* channel, const std::atomic<uint64_t>* epoch);

  // A new record that nobody has submitted yet. Waits while all slots have records that have not been reached; the
  // error of the channel if that comes first.
  CUresult Take(std::shared_ptr<EventRecord>* out);
  // Gives a slot to a record that has none. Returns false when no slot is free now. Allocates nothing.
  [[nodiscard]] bool TryTake(const std::shared_ptr<EventRecord>& record);
  // Would Take not wait?
  bool HasFree() { return HasFree(Kept(), 1); }
  // Waits until so many are free; the error of the channel if that comes first.
  CUresult AwaitFree(uint32_t count);
  // It has not been submitted.
  void GiveBack(const EventRecord& record);
  // The record of a VGPU_SLOT_GATE is reached now.
  void Open(const EventRecord& record);

  bool Reached(const EventRecord& record) const;
  // Waits for it; needs no room in the channel. The error that came first, if one did.
  CUresult Wait(const EventRecord& record) const;
  // When a record was reached that has been.
  uint64_t Time(EventRecord& record);

 private:
  // So many slots are for threads that serve turns (channel/turns.h), which others may wait for.
  static uint32_t Kept() { return Turns::Exempt::Now() ? 0 : kForTurns; }
  static constexpr uint32_t kForTurns = 128;
  bool HasFree(uint32_t kept, uint32_t count) EXCLUDES(mutex_);
  bool FindFree(uint32_t kept, uint32_t count) REQUIRES(mutex_);
  void Free(uint32_t slot) REQUIRES(mutex_);
  void Settle(EventRecord& record) REQUIRES(mutex_);

  Channel* const channel_;
  const std::atomic<uint64_t>* const epoch_;
  Mutex mutex_{lock_rank::kEventSlots};
  // Those that no record has, in the order in which they are given out; the first is at free_begin_.
  std::array<uint32_t, VGPU_EVENT_SLOTS> free_ GUARDED_BY(mutex_){};
  uint32_t free_begin_ GUARDED_BY(mutex_) = 0;
  uint32_t free_count_ GUARDED_BY(mutex_) = 0;
  uint32_t oldest_ GUARDED_BY(mutex_) = 0;  // where the next sweep begins
  std::array<std::shared_ptr<EventRecord>, VGPU_EVENT_SLOTS> records_ GUARDED_BY(mutex_);  // of the slots in use
  std::array<uint64_t, VGPU_EVENT_SLOTS> generation_ GUARDED_BY(mutex_){};                 // last one given out
};

}  // namespace vgpud::cuda
