// SPDX-License-Identifier: Apache-2.0
// Small numbers that each wait for a moment, to the nanosecond, in a few steps per number however many wait.
//
// Moments are written with digits of 6 bits. A number waits in the slot of the first digit in which its moment differs
// from the last moment asked about: one of 64 slots per digit. When time passes a slot, all in it have rung; when time
// enters one, those in it move to the slots of a later digit. So the numbers of a slot need no order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sched/types.h"

namespace vgpud {

class Alarms {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  Alarms() { heads_.fill(kNone); }

  // Numbers below `count` may be used. Only this allocates.
  void Grow(uint32_t count) {
    if (count > entries_.size()) entries_.resize(count);
  }
  // `id` rings at `at`, and not at an earlier setting.
  void Set(uint32_t id, TimePoint at) {
    Remove(id);
    entries_[id].at = Ticks(at);
    Insert(id);
  }
  void Remove(uint32_t id) {
    if (!Has(id)) return;
    const Entry& entry = entries_[id];
    if (entry.next != kNone) entries_[entry.next].previous = entry.previous;
    if (entry.previous != kNone) {
      entries_[entry.previous].next = entry.next;
    } else {
      heads_[entry.slot] = entry.next;
      if (entry.next == kNone) Emptied(entry.slot);
    }
    entries_[id].slot = kNoSlot;
  }
  bool Has(uint32_t id) const { return entries_[id].slot != kNoSlot; }
  bool empty() const { return digits_ == 0; }
  // Calls `rang`(id) for each that rings at `now` or before, in any order; it no longer waits then. `now` never falls.
  // `rang` may set and remove alarms, but none that rings by `now`.
  template <typename Rang>
  void Ring(TimePoint now, Rang&& rang) {
    const uint64_t to = std::max(now_, Ticks(now));
    const uint32_t digit = FirstDifference(now_, to);
    const uint32_t finer = (1u << digit) - 1;
    while ((digits_ & finer) != 0) rang(Take(LeastSlot(Least(digits_ & finer))));
    const uint64_t here = uint64_t{1} << Digit(to, digit);
    RingSlots(digit, here - 1, rang);
    now_ = to;
    if ((slots_[digit] & here) == 0) return;
    if (digit != 0) Refine(digit * kSlots + Digit(to, digit));
    RingSlots(0, uint64_t{1} << Digit(to, 0), rang);
  }
  // The first moment at which one rings. Takes time per number in its slot. max(): nobody waits.
  TimePoint Earliest() const {
    if (empty()) return TimePoint::max();
    uint64_t earliest = ~uint64_t{0};
    for (uint32_t id = heads_[LeastSlot(Least(digits_))]; id != kNone; id = entries_[id].next)
      earliest = std::min(earliest, entries_[id].at);
    return TimePoint{Ns{static_cast<int64_t>(earliest ^ kSign)}};
  }

 private:
  static constexpr uint32_t kBits = 6;
  static constexpr uint32_t kSlots = 1u << kBits;
  static constexpr uint32_t kDigits = (64 + kBits - 1) / kBits;
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static constexpr uint16_t kNoSlot = kDigits * kSlots;
  struct alignas(32) Entry {
    uint64_t at = 0;
    uint32_t next = kNone;
    uint32_t previous = kNone;
    uint16_t slot = kNoSlot;
  };

  // In the order of time, also before zero.
  static uint64_t Ticks(TimePoint at) { return static_cast<uint64_t>(at.time_since_epoch().count()) ^ kSign; }
  template <typename Word>
  static uint32_t Least(Word word) {
    return static_cast<uint32_t>(std::countr_zero(word));
  }
  static uint32_t Digit(uint64_t ticks, uint32_t digit) {
    return static_cast<uint32_t>(ticks >> (digit * kBits)) & (kSlots - 1);
  }
  // Counted from the last digit. 0 also if there is none.
  static uint32_t FirstDifference(uint64_t a, uint64_t b) {
    return (63 - static_cast<uint32_t>(std::countl_zero((a ^ b) | 1))) / kBits;
  }
  uint32_t LeastSlot(uint32_t digit) const { return digit * kSlots + Least(slots_[digit]); }

  void Insert(uint32_t id) {
    Entry& entry = entries_[id];
    const uint64_t at = std::max(entry.at, now_);
    const uint32_t digit = FirstDifference(at, now_);
    const uint32_t value = Digit(at, digit);
    entry.slot = static_cast<uint16_t>(digit * kSlots + value);
    entry.previous = kNone;
    entry.next = heads_[entry.slot];
    if (entry.next != kNone) entries_[entry.next].previous = id;
    heads_[entry.slot] = id;
    slots_[digit] |= uint64_t{1} << value;
    digits_ |= 1u << digit;
  }
  void Emptied(uint32_t slot) {
    const uint32_t digit = slot / kSlots;
    slots_[digit] &= ~(uint64_t{1} << (slot % kSlots));
    digits_ &= ~(uint32_t{slots_[digit] == 0} << digit);
  }
  template <typename Rang>
  void RingSlots(uint32_t digit, uint64_t mask, Rang&& rang) {
    while ((slots_[digit] & mask) != 0) rang(Take(digit * kSlots + Least(slots_[digit] & mask)));
  }
  uint32_t Take(uint32_t slot) {
    const uint32_t id = heads_[slot];
    const uint32_t next = entries_[id].next;
    entries_[id].slot = kNoSlot;
    heads_[slot] = next;
    if (next == kNone)
      Emptied(slot);
    else
      entries_[next].previous = kNone;
    return id;
  }
  void Refine(uint32_t slot) {
    uint32_t id = heads_[slot];
    heads_[slot] = kNone;
    Emptied(slot);
    while (id != kNone) {
      const uint32_t next = entries_[id].next;
      Insert(id);
      id = next;
    }
  }

  std::vector<Entry> entries_;                    // by number
  std::array<uint32_t, kDigits * kSlots> heads_;  // first number of each slot
  std::array<uint64_t, kDigits> slots_{};         // bit per slot that is not empty
  uint32_t digits_ = 0;                           // bit per digit with such a slot
  uint64_t now_ = 0;                              // the last moment asked about
};

}  // namespace vgpud
