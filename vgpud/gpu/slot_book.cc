// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/slot_book.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/slot_bits.h"

namespace vgpud::daemon {
namespace {

// More than any backend does in a nanosecond.
constexpr uint64_t kMostInstructionsPerNs = 64;
constexpr uint64_t kMostEventsPerNs = 1;
constexpr uint64_t kMostBytesPerNs = 64;
constexpr uint64_t kMostImageBytes = uint64_t{512} << 20;
// Those of an executor that work without a turn; one more, since what was done before the last look may come late.
constexpr uint64_t kHostWorkThreads = 3;
// So long before it was seen to grow a wait for a core may have begun that is added the next time.
constexpr uint64_t kSeenLateNs = 1'000'000'000;
// Between two looks, in bytes and in nanoseconds: no card has so much memory.
constexpr uint64_t kMostMoved = uint64_t{1} << 46;

}  // namespace

bool SlotBook::Counter::Read(uint64_t now, uint64_t most) {
  const uint64_t before = std::exchange(last, now);
  if (now < before || now - before > most) return false;
  total += now - before;
  return true;
}

bool SlotBook::ReadTime(uint64_t says, Counter& to, uint64_t& grew_at_ns, uint64_t threads, uint64_t more) {
  if (says == to.last) return true;
  const uint64_t now = MonotonicNs();
  return to.Read(says, (now - std::exchange(grew_at_ns, now)) * threads + more);
}

void SlotBook::Begin(uint32_t slot, const SlotPage& page, bool resumed) {
  Slot& to = slots_[slot];
  // Nobody tells what a resumed one had moved before, or what failed.
  const auto moves = MovesOf(page.memory[slot]);
  for (size_t i = 0; i < moves.size(); ++i) to.moves[i].last = moves[i];
  to.faults = FaultsIn(page, slot);
  if (resumed) return;
  const ExecSlot& now = page.slots[slot];
  to.kernels.last = now.kernels.load(std::memory_order_relaxed);
  to.warp_instructions.last = now.warp_instructions.load(std::memory_order_relaxed);
  to.preempts.last = now.preempts.load(std::memory_order_relaxed);
  to.host_work_ns.last = now.host_work_ns.load(std::memory_order_relaxed);
  to.module_loads.last = now.module_loads.load(std::memory_order_relaxed);
  to.module_bytes.last = now.module_bytes.load(std::memory_order_relaxed);
  to.core_wait_ns.last = now.core_wait_ns.load(std::memory_order_relaxed);
  to.read_at_ns = to.host_work_at_ns = to.core_wait_at_ns = MonotonicNs();
}

uint64_t SlotBook::Read(const SlotPage& page, uint64_t live) {
  const uint64_t now = MonotonicNs();
  uint64_t bad = 0;
  ForEachBit(live, [&](uint32_t slot) {
    const ExecSlot& from = page.slots[slot];
    Slot& to = slots_[slot];
    const uint64_t ns = now - std::exchange(to.read_at_ns, now);
    const bool good[] = {
        to.kernels.Read(from.kernels.load(std::memory_order_relaxed), ns * kMostEventsPerNs),
        to.warp_instructions.Read(from.warp_instructions.load(std::memory_order_relaxed), ns * kMostInstructionsPerNs),
        to.preempts.Read(from.preempts.load(std::memory_order_relaxed), ns * kMostEventsPerNs),
        to.module_loads.Read(from.module_loads.load(std::memory_order_relaxed), ns * kMostEventsPerNs),
        to.module_bytes.Read(from.module_bytes.load(std::memory_order_relaxed), kMostImageBytes + ns * kMostBytesPerNs),
        ReadTime(from.host_work_ns, to.host_work_ns, to.host_work_at_ns, kHostWorkThreads, 0),
        ReadTime(from.core_wait_ns, to.core_wait_ns, to.core_wait_at_ns, 1, kSeenLateNs)};
    bad += static_cast<uint64_t>(std::count(std::begin(good), std::end(good), false));
    // Seldom, and all at once at its end: only what goes back is not believed.
    const auto moves = MovesOf(page.memory[slot]);
    for (size_t i = 0; i < moves.size(); ++i) (void)to.moves[i].Read(moves[i], kMostMoved);
    ReadFaults(page, slot);
  });
  return bad;
}

// Several since the last look have the error of the last.
void SlotBook::ReadFaults(const SlotPage& page, uint32_t slot) {
  const uint32_t word = page.clocks[slot].faults.load(std::memory_order_relaxed);
  const auto reported = static_cast<uint16_t>(word >> 16);
  const auto more = static_cast<uint16_t>(reported - std::exchange(slots_[slot].faults, reported));
  if (more != 0) faults_.Count(word & 0xffff, more);
}

std::array<uint64_t, SlotBook::kMoves> SlotBook::MovesOf(const ExecMemory& memory) {
  return {memory.evictions.load(std::memory_order_relaxed), memory.evicted_bytes.load(std::memory_order_relaxed),
          memory.evicting_ns.load(std::memory_order_relaxed), memory.returned_bytes.load(std::memory_order_relaxed),
          memory.returning_ns.load(std::memory_order_relaxed)};
}

VfStats::Work SlotBook::Work(const SlotPage& page, uint64_t live) const {
  VfStats::Work work;
  work.faults = faults_;
  for (const Slot& slot : slots_) {
    work.kernels += slot.kernels.total;
    work.warp_instructions += slot.warp_instructions.total;
    work.executor_preempts += slot.preempts.total;
    work.host_work_ns += slot.host_work_ns.total;
    work.module_loads += slot.module_loads.total;
    work.module_bytes += slot.module_bytes.total;
    work.core_wait_ns += slot.core_wait_ns.total;
    uint64_t* const moves[] = {&work.evictions, &work.evicted_bytes, &work.evicting_ns, &work.returned_bytes,
                               &work.returning_ns};
    for (size_t i = 0; i < kMoves; ++i) *moves[i] += slot.moves[i].total;
  }
  ForEachBit(live, [&](uint32_t slot) {
    const ExecMemory& memory = page.memory[slot];
    work.movable_bytes += std::min(memory.on_card.load(std::memory_order_relaxed), kMostMoved);
    work.moved_bytes += std::min(memory.off_card.load(std::memory_order_relaxed), kMostMoved);
  });
  return work;
}

SlotBook::Counted SlotBook::counted() const {
  Counted counted{};
  for (uint32_t slot = 0; slot < kMaxExecutors; ++slot) {
    const auto counters = slots_[slot].All();
    for (size_t c = 0; c < kCounters; ++c) counted[slot][c] = counters[c]->last;
  }
  return counted;
}

void SlotBook::SetCounted(const Counted& counted, uint64_t at_ns) {
  for (uint32_t slot = 0; slot < kMaxExecutors; ++slot) {
    Slot& to = slots_[slot];
    const auto all = to.All();
    for (size_t c = 0; c < kCounters; ++c) all[c]->last = counted[slot][c];
    to.read_at_ns = to.host_work_at_ns = to.core_wait_at_ns = at_ns;
  }
}

}  // namespace vgpud::daemon
