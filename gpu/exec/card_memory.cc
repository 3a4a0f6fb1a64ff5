// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/card_memory.h"

#include <algorithm>

#include "base/futex.h"
#include "base/log.h"

namespace vgpud::exec {
namespace {

// Drivers don't tell when memory is freed.
constexpr uint64_t kLookForRoomNs = 1'000'000;

}  // namespace

GpuResult<Evictable::Back> CardMemory::BringBack(Evictable& memory, const StopWord& stop) {
  if (memory.off_card() == 0) return Evictable::Back::kAll;
  const uint64_t begin = now_ns_();
  room_seen_ = page_.room.load(std::memory_order_seq_cst);
  uint64_t bytes = 0;
  const auto back = memory.BringBack(stop, &bytes);
  const uint64_t took = now_ns_() - begin;
  if (bytes != 0 || (back && *back == Evictable::Back::kAll)) {
    slot_.returned_bytes.fetch_add(bytes, std::memory_order_relaxed);
    slot_.returning_ns.fetch_add(took, std::memory_order_relaxed);
    computed_ = false;
    LOG(kInfo, "brought {} bytes back to the card in {} us", bytes, took / 1000);
  }
  const uint64_t wanted = back && *back == Evictable::Back::kNoRoom ? memory.off_card() : 0;
  if (slot_.wanted.exchange(wanted, std::memory_order_seq_cst) == 0 && wanted != 0) ring_();
  Tell(&memory, true);
  return back;
}

void CardMemory::AwaitRoom() const {
  const uint64_t look = now_ns_() + kLookForRoomNs, turn = page_.deadline_ns.load(std::memory_order_relaxed);
  FutexWait(&page_.room, room_seen_, turn != 0 ? std::min(look, turn) : look);
}

bool CardMemory::MustLeave(const Evictable& memory, bool has_work) const {
  return memory.on_card() != 0 && (computed_ || !has_work) && page_.make_room.load(std::memory_order_seq_cst) != 0;
}

void CardMemory::Leave(Evictable& memory) {
  const uint64_t begin = now_ns_();
  const auto bytes = memory.Evict();
  const uint64_t took = now_ns_() - begin;
  if (bytes) {
    slot_.evictions.fetch_add(1, std::memory_order_relaxed);
    slot_.evicted_bytes.fetch_add(*bytes, std::memory_order_relaxed);
    slot_.evicting_ns.fetch_add(took, std::memory_order_relaxed);
    ring_();
    LOG(kInfo, "took {} bytes off the card in {} us", *bytes, took / 1000);
  } else {
    LOG_LIMITED(refusals_, kError, "can't take memory off the card: {}", bytes.error().text);
  }
}

void CardMemory::Tell(const Evictable* memory, bool has_work) {
  const uint64_t off_card = memory != nullptr ? memory->off_card() : 0;
  slot_.on_card.store(memory != nullptr ? memory->on_card() : 0, std::memory_order_relaxed);
  slot_.off_card.store(off_card, std::memory_order_relaxed);
  if (off_card == 0 || !has_work) slot_.wanted.store(0, std::memory_order_seq_cst);
}

}  // namespace vgpud::exec
