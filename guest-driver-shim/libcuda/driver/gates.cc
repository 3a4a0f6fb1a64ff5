// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/gates.h"

namespace vgpud::cuda {
namespace {

// So many of the header's gates are kept for host functions in bodies of conditional nodes, which other gates wait for.
constexpr size_t kForTurns = 64;

}  // namespace

Gates::Gates(Channel* channel, EventSlots* slots) : channel_(channel), slots_(slots), generation_(VGPU_GATES) {
  for (uint32_t gate = VGPU_GATES; gate-- > 0;) free_.push_back(gate);
}

bool Gates::AnyToShare() const { return free_.size() > (Turns::Exempt::Now() ? 0 : kForTurns); }

bool Gates::TryShare(uint32_t* shared) {
  if (are_slots()) return true;
  MutexLock lock(mutex_);
  if (!AnyToShare()) return false;
  *shared = free_.back();
  free_.pop_back();
  return true;
}

void Gates::AwaitShared() {
  lock_check::BeforeWait();
  MutexLock lock(mutex_);
  while (!AnyToShare()) one_is_free_.Wait(mutex_);
}

void Gates::GiveBack(uint32_t shared) {
  if (are_slots()) return;
  MutexLock lock(mutex_);
  free_.push_back(shared);
  one_is_free_.NotifyAll();
}

Gate Gates::Make() const {
  Gate gate;
  if (are_slots()) gate.slot = std::make_shared<EventRecord>();
  return gate;
}

bool Gates::TryTake(const std::shared_ptr<EventRecord>& reached, uint32_t shared, Gate* gate) {
  if (!slots_->TryTake(reached)) return false;
  if (gate->slot == nullptr) {
    MutexLock lock(mutex_);
    gate->number = shared;
    gate->generation = ++generation_[shared];
    return true;
  }
  if (!slots_->TryTake(gate->slot)) {
    slots_->GiveBack(*reached);
    return false;
  }
  gate->number = VGPU_SLOT_GATE(gate->slot->slot);
  gate->generation = gate->slot->generation;
  return true;
}

CUresult Gates::AwaitFree() { return slots_->AwaitFree(are_slots() ? 2 : 1); }

void Gates::Open(const Gate& gate) {
  if (gate.slot != nullptr) return slots_->Open(*gate.slot);
  channel_->OpenGate(gate.number, gate.generation);
}

}  // namespace vgpud::cuda
