// SPDX-License-Identifier: Apache-2.0
// The heap of this process, counted: every new and delete of vgpud-exec (heap_operators.cc) goes through here, so that
// what the guest makes us keep is charged to its VF without a counter at each place that keeps something.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_memory.h"

namespace vgpud::exec::heap {

// From now on allocations count in `memory`, which lives for ever; a thread settles its part now and then.
void CountIn(HostMemory* memory);

// While one lives, this thread gets std::bad_alloc for what `memory` does not grant; the innermost one says whether it
// waits. Elsewhere allocations are counted and never refused: what is kept there is small and bounded in number.
class Limit {
 public:
  // `wait`: for the ledger's answer; not on the thread that asks it (HostMemory::TakeOrWait).
  explicit Limit(bool wait);
  ~Limit();
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  // After bad_alloc: the bytes that were not there.
  static size_t missing();

 private:
  const uint8_t around_;  // what was in force
};

// Small allocations outside of a Limit that the host refuses are served from memory that was set aside for this, once:
// what has begun ends in order. True: that memory is there, or there again. False: begin nothing that keeps anything.
// Any thread.
bool KeepReserve();

void* Allocate(size_t bytes, size_t alignment);
void Free(void* memory) noexcept;

}  // namespace vgpud::exec::heap
