// SPDX-License-Identifier: Apache-2.0
// What the executors of one VF say that they have done: read from their slots, believed as far as it can be. Scheduler
// thread only.
#pragma once

#include <array>
#include <cstdint>

#include "base/slice_page.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

class SlotBook {
 public:
  // What the counters of each slot said when they were last read.
  static constexpr size_t kCounters = 7;
  using Counted = std::array<std::array<uint64_t, kCounters>, kMaxExecutors>;

  // The slot has a new executor. Its counters go on where the slot's last executor left them; those of one that is
  // `resumed`, where SetCounted said.
  void Begin(uint32_t slot, const SlotPage& page, bool resumed);
  // Reads the counters of the slots whose bits are set in `live`; says how many of them were not believed.
  [[nodiscard]] uint64_t Read(const SlotPage& page, uint64_t live);
  // All that was read, and what those in `live` have of the card's memory now.
  VfStats::Work Work(const SlotPage& page, uint64_t live) const;
  Counted counted() const;
  // The counters had been read like this, at that time, by an earlier vgpud: they go on from there.
  void SetCounted(const Counted& counted, uint64_t at_ns);

 private:
  static constexpr size_t kMoves = 5;  // of memory that leaves the card
  struct Counter {
    uint64_t last = 0;
    uint64_t total = 0;
    // False: it went back, or forward by more than `most`; that is not added.
    bool Read(uint64_t now, uint64_t most);
  };
  struct Slot {
    Counter kernels, warp_instructions, preempts, host_work_ns, module_loads, module_bytes, core_wait_ns;
    std::array<Counter, kMoves> moves;  // in the order of MovesOf
    uint16_t faults = 0;                // of those that its executors report, so many are counted
    uint64_t read_at_ns = 0;
    uint64_t host_work_at_ns = 0;  // when it was last seen to grow: a long load is counted at its end
    uint64_t core_wait_at_ns = 0;  // the same: a turn is counted at its end
    std::array<Counter*, kCounters> All() {
      return {&kernels, &warp_instructions, &preempts, &host_work_ns, &module_loads, &module_bytes, &core_wait_ns};
    }
    std::array<const Counter*, kCounters> All() const {
      return {&kernels, &warp_instructions, &preempts, &host_work_ns, &module_loads, &module_bytes, &core_wait_ns};
    }
  };
  static std::array<uint64_t, kMoves> MovesOf(const ExecMemory& memory);
  static uint16_t FaultsIn(const SlotPage& page, uint32_t slot) {
    return static_cast<uint16_t>(page.clocks[slot].faults.load(std::memory_order_relaxed) >> 16);
  }
  void ReadFaults(const SlotPage& page, uint32_t slot);
  // Of a time that is added up now and then; since it was last seen to grow, it grows by `threads` a nanosecond and
  // `more` at most.
  static bool ReadTime(uint64_t says, Counter& to, uint64_t& grew_at_ns, uint64_t threads, uint64_t more);

  std::array<Slot, kMaxExecutors> slots_;
  KernelFaults faults_;
};

}  // namespace vgpud::daemon
