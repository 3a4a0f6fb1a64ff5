// SPDX-License-Identifier: Apache-2.0
// A GPU that can change a word in the middle of its kernels, for tests: at an instruction that the test chooses, as a
// revoke from outside may at any moment.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpud {

// Changes `word` while the `left`-th warp instruction from now on is in flight.
struct InstructionTrip {
  std::atomic<uint32_t>* word;
  std::atomic<uint64_t> left;
  // For each warp instruction. Any thread.
  void Count() {
    if (left.fetch_sub(1, std::memory_order_relaxed) == 1) word->fetch_add(1, std::memory_order_relaxed);
  }
};

class TripsMidKernel {
 public:
  virtual ~TripsMidKernel() = default;
  // Counts with `trip`, which outlives the Gpu, each warp instruction of all its kernels; slow. Not while a grid runs.
  virtual void SetTrip(InstructionTrip* trip) = 0;
};

}  // namespace vgpud
