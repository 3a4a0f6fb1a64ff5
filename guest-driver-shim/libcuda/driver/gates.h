// SPDX-License-Identifier: Apache-2.0
// Gates hold the later work of a stream back until a host function has returned (GATE_WAIT in uapi/vgpu_abi.h). Each
// function has one of its own, an event slot that this library raises itself. On hosts without VGPU_FEATURE_SLOT_GATES
// the functions of a stream share one of the few gates of the channel's header.
#pragma once

#include <memory>
#include <vector>

#include "guest-driver-shim/libcuda/driver/event_slots.h"

namespace vgpud::cuda {

struct Gate {
  uint32_t number = 0;
  uint64_t generation = 0;            // opens it
  std::shared_ptr<EventRecord> slot;  // whose gate it is; null: one of the header's

  Command WaitIn(uint32_t stream) const {
    Command command;
    command.op = VGPU_OP_GATE_WAIT;
    command.stream = stream;
    command.args[0] = number;
    command.args[1] = generation;
    return command;
  }
};

// Any thread.
class Gates {
 public:
  // Both outlive it.
  Gates(Channel* channel, EventSlots* slots);

  // The gate of a stream, for as long as it has functions; nothing where each function has its own. False: none is free
  // now.
  [[nodiscard]] bool TryShare(uint32_t* shared);
  // Waits until TryShare finds one, unless others are faster.
  void AwaitShared();
  void GiveBack(uint32_t shared);

  // A gate that is taken with TryTake. It costs nothing yet.
  Gate Make() const;
  // Takes a slot for `reached` and closes a gate, both or none. Allocates nothing, and does not wait.
  [[nodiscard]] bool TryTake(const std::shared_ptr<EventRecord>& reached, uint32_t shared, Gate* gate);
  // Waits until TryTake finds both, unless others are faster; the error of the channel if that comes first.
  CUresult AwaitFree();
  // It is taken back, if it was the function's own.
  void Open(const Gate& gate);

 private:
  bool are_slots() const { return (channel_->transport().info().features & VGPU_FEATURE_SLOT_GATES) != 0; }
  bool AnyToShare() const REQUIRES(mutex_);
  Channel* const channel_;
  EventSlots* const slots_;
  Mutex mutex_{lock_rank::kGates};
  CondVar one_is_free_;
  // Of the header's.
  std::vector<uint32_t> free_ GUARDED_BY(mutex_);
  std::vector<uint64_t> generation_ GUARDED_BY(mutex_);  // last one given out
};

}  // namespace vgpud::cuda
