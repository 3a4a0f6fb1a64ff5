// SPDX-License-Identifier: Apache-2.0
// What executors say that they have done: read from their slots, believed as far as it can be.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "vgpud/gpu/slice_world.h"

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

bool SliceWorld::Counter::Read(uint64_t now, uint64_t most) {
  const uint64_t before = std::exchange(last, now);
  if (now < before || now - before > most) return false;
  total += now - before;
  return true;
}

bool SliceWorld::ReadTime(uint64_t says, Counter& to, uint64_t& grew_at_ns, uint64_t threads, uint64_t more) {
  if (says == to.last) return true;
  const uint64_t now = MonotonicNs();
  return to.Read(says, (now - std::exchange(grew_at_ns, now)) * threads + more);
}

void SliceWorld::ReadCounters(World& world) {
  const uint64_t now = MonotonicNs();
  ForEachBit(world.live, [&](uint32_t slot) {
    const ExecSlot& from = world.slot_page().slots[slot];
    SlotCounters& to = world.counters[slot];
    const uint64_t ns = now - std::exchange(to.read_at_ns, now);
    const bool good[] = {
        to.kernels.Read(from.kernels.load(std::memory_order_relaxed), ns * kMostEventsPerNs),
        to.warp_instructions.Read(from.warp_instructions.load(std::memory_order_relaxed), ns * kMostInstructionsPerNs),
        to.preempts.Read(from.preempts.load(std::memory_order_relaxed), ns * kMostEventsPerNs),
        to.module_loads.Read(from.module_loads.load(std::memory_order_relaxed), ns * kMostEventsPerNs),
        to.module_bytes.Read(from.module_bytes.load(std::memory_order_relaxed), kMostImageBytes + ns * kMostBytesPerNs),
        ReadTime(from.host_work_ns, to.host_work_ns, to.host_work_at_ns, kHostWorkThreads, 0),
        ReadTime(from.core_wait_ns, to.core_wait_ns, to.core_wait_at_ns, 1, kSeenLateNs)};
    ReadMoves(world.slot_page().memory[slot], to);
    world.conduct.bad_slots += static_cast<uint64_t>(std::count(std::begin(good), std::end(good), false));
  });
}

std::array<uint64_t, SliceWorld::kMoveCounters> SliceWorld::MovesOf(const ExecMemory& memory) {
  return {memory.evictions.load(std::memory_order_relaxed), memory.evicted_bytes.load(std::memory_order_relaxed),
          memory.evicting_ns.load(std::memory_order_relaxed), memory.returned_bytes.load(std::memory_order_relaxed),
          memory.returning_ns.load(std::memory_order_relaxed)};
}

// Seldom, and all at once at its end: only what goes back is not believed.
void SliceWorld::ReadMoves(const ExecMemory& from, SlotCounters& to) {
  const auto now = MovesOf(from);
  for (size_t i = 0; i < now.size(); ++i) (void)to.moves[i].Read(now[i], kMostMoved);
}

void SliceWorld::ShareCard() {
  uint32_t waiting = 0;
  const World* who = nullptr;
  for (const auto& world : worlds_) {
    if (world == nullptr || IsPaused(*world)) continue;
    bool wants = false;
    ForEachBit(world->live, [&](uint32_t slot) {
      const SlotPage& page = world->slot_page();
      const auto state = static_cast<ExecState>(page.slots[slot].state.load(std::memory_order_seq_cst));
      const bool in_line = state == ExecState::kReady || state == ExecState::kRunning;
      wants |= in_line && page.memory[slot].wanted.load(std::memory_order_seq_cst) != 0;
    });
    if (wants) who = world.get();
    waiting += wants ? 1 : 0;
  }
  for (const auto& world : worlds_)
    if (world != nullptr)
      world->grant_page().make_room.store(waiting > 1 || (waiting == 1 && who != world.get()) ? 1 : 0,
                                          std::memory_order_seq_cst);
}

VfStats::Work SliceWorld::WorkOf(VfId vf) {
  VfStats::Work work;
  World* world = Find(vf);
  if (world == nullptr) return work;
  ReadCounters(*world);
  for (const SlotCounters& counters : world->counters) {
    work.kernels += counters.kernels.total;
    work.warp_instructions += counters.warp_instructions.total;
    work.executor_preempts += counters.preempts.total;
    work.host_work_ns += counters.host_work_ns.total;
    work.module_loads += counters.module_loads.total;
    work.module_bytes += counters.module_bytes.total;
    work.core_wait_ns += counters.core_wait_ns.total;
    uint64_t* const moves[] = {&work.evictions, &work.evicted_bytes, &work.evicting_ns, &work.returned_bytes,
                               &work.returning_ns};
    for (size_t i = 0; i < kMoveCounters; ++i) *moves[i] += counters.moves[i].total;
  }
  ForEachBit(world->live, [&](uint32_t slot) {
    const ExecMemory& memory = world->slot_page().memory[slot];
    work.movable_bytes += std::min(memory.on_card.load(std::memory_order_relaxed), kMostMoved);
    work.moved_bytes += std::min(memory.off_card.load(std::memory_order_relaxed), kMostMoved);
  });
  return work;
}

SliceWorld::Counted SliceWorld::CountedOf(VfId vf) const {
  Counted counted{};
  World* world = Find(vf);
  if (world == nullptr) return counted;
  for (uint32_t slot = 0; slot < kMaxExecutors; ++slot) {
    const auto counters = world->counters[slot].All();
    for (size_t c = 0; c < kSlotCounters; ++c) counted[slot][c] = counters[c]->last;
  }
  return counted;
}

void SliceWorld::SetCounted(VfId vf, const Counted& counted, uint64_t at_ns) {
  World* world = Find(vf);
  if (world == nullptr) return;
  for (uint32_t slot = 0; slot < kMaxExecutors; ++slot) {
    SlotCounters& counters = world->counters[slot];
    const auto all = counters.All();
    for (size_t c = 0; c < kSlotCounters; ++c) all[c]->last = counted[slot][c];
    counters.read_at_ns = counters.host_work_at_ns = counters.core_wait_at_ns = at_ns;
  }
}

}  // namespace vgpud::daemon
