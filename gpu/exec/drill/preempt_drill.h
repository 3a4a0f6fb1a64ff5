// SPDX-License-Identifier: Apache-2.0
// A test mode of vgpud-exec: kernels stop every so many warp instructions, in the middle, as if the GPU were taken
// back, and the drill says what its device wrote to the guest program. That must be the same without cuts.
//
// The interpreter itself changes the stop word while an instruction is in flight (gpu/capability/instruction_trip.h)
// and sees it where it sees a revoke; the executor then takes the way of a revoke: off the GPU, acknowledge, wait for a
// grant, enter again. The word is not that of the slice page, so a true revoke is seen at the next cut or look at the
// deadline. DrillGpu puts the drill around a Gpu.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/capability/instruction_trip.h"
#include "gpu/exec/drill/word_watch.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

class PreemptDrill {
 public:
  // `every`: warp instructions from one cut to the next, 0 = no cuts, only the account of what was written.
  explicit PreemptDrill(uint64_t every);

  // --- GPU thread ---
  // For the GPU to count with; nullptr: without cuts.
  InstructionTrip* trip() { return every_ != 0 ? &trip_ : nullptr; }
  // What to run a kernel under instead of `stop`, the word of the slice page.
  StopWord Arm(const StopWord& stop);
  // Was the last step cut? Counts the cut; the next one is due `every` instructions later.
  bool CountCut();
  void CountInstructions(uint64_t ran) { instructions_.fetch_add(ran, std::memory_order_relaxed); }
  // A part of a copy to the guest. The account does not depend on the order of copies.
  void AddCopy(GpuVa from, std::span<const std::byte> bytes);
  WordWatch words;

  // --- I/O thread ---
  // Output of kernels, in pieces; the account does not depend on the order of its lines.
  void AddPrinted(std::span<const std::byte> text);

  // Any thread: "preempt drill: every=64 cuts=1234 instructions=78976 copied=4096 printed=0 account=0123456789abcdef"
  std::string Report() const;
  uint64_t cuts() const { return cuts_.load(std::memory_order_relaxed); }
  uint64_t account() const { return account_.load(std::memory_order_relaxed); }

 private:
  const uint64_t every_;
  std::atomic<uint32_t> word_{0};
  uint32_t armed_ = 0;  // the word when the step began
  InstructionTrip trip_;
  std::atomic<uint64_t> cuts_{0};
  std::atomic<uint64_t> instructions_{0};
  std::atomic<uint64_t> copied_{0};
  std::atomic<uint64_t> printed_{0};
  std::atomic<uint64_t> account_{0};
  std::string line_;
};

}  // namespace vgpud::exec
