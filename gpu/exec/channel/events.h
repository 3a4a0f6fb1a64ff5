// SPDX-License-Identifier: Apache-2.0
// Event slots: how far EVENT_RECORDs have been submitted and completed. A wait is accepted only for a record that came
// earlier in the ring, so waits cannot form a circle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::exec {

class EventTable {
 public:
  static bool ValidSlot(uint64_t slot) { return slot < VGPU_EVENT_SLOTS; }
  void Submit(uint64_t slot, uint64_t generation) { Raise(submitted_[slot], generation); }
  void Complete(uint64_t slot, uint64_t generation) { Raise(completed_[slot], generation); }
  bool Submitted(uint64_t slot, uint64_t generation) const { return submitted_[slot] >= generation; }
  bool Completed(uint64_t slot, uint64_t generation) const { return completed_[slot] >= generation; }
  uint64_t completed(uint64_t slot) const { return completed_[slot]; }

 private:
  static void Raise(uint64_t& value, uint64_t to) { value = std::max(value, to); }
  std::vector<uint64_t> submitted_ = std::vector<uint64_t>(VGPU_EVENT_SLOTS);
  std::vector<uint64_t> completed_ = std::vector<uint64_t>(VGPU_EVENT_SLOTS);
};

}  // namespace vgpud::exec
