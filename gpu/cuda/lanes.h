// SPDX-License-Identifier: Apache-2.0
// What work of this context is on the GPU or may be: one stream of the driver for each kernel that runs, so that
// kernels of different guest streams can run together, and one for copies. The executor keeps the order between guest
// streams itself (gpu/exec/streams.h): it starts nothing before what it waits for has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/card.h"

namespace vgpud::driver {

// A stream, and the event that tells when its work is done.
struct Lane {
  Stream stream = nullptr;
  Event done = nullptr;
};

// What was on the GPU when it had to be left, counted over the life of a context.
struct Ends {
  uint64_t by_safepoints = 0;    // launches that left with blocks in their middle
  uint64_t by_blocks = 0;        // launches that left blocks for a later turn, and none of those
  uint64_t by_gate = 0;          // kernels that had to be waited for, because they can't be stopped
  uint32_t running_by_gate = 0;  // of that kind, now
};

// The GPU thread, but for copies().
class Lanes {
 public:
  explicit Lanes(const Card& card) : card_(card) {}
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // A lane without work.
  GpuResult<Lane> Take();
  // Its work is over.
  void GiveBack(Lane lane);
  // It may still have work, and nobody wants to know of it any more.
  void Abandon(Lane lane);
  // Lanes that were taken, and not given back or abandoned.
  uint32_t taken() const { return taken_; }

  Ends ends;

  // Where copies and fills run; nullptr with an error from the driver. Any thread that may copy.
  GpuResult<Stream> copies();

 private:
  const Card& card_;
  std::vector<Lane> free_;
  Stream copies_ = nullptr;
  uint32_t taken_ = 0;
};

}  // namespace vgpud::driver
