// SPDX-License-Identifier: Apache-2.0
// Strict round robin in order of number, with a slice per entry and full repayment of overruns. The building block of
// the rotation: its entries are VFs, or groups of VFs.
//
// Time over the slice is debt. A turn repays debt / averaging factor, rounded up, by being shorter; when that is the
// whole slice or more, the entry is passed over and owes a slice less. Nothing unused is credit.
//
// A woken entry may have its turn early: what it uses then is taken off its slice when the wheel comes to its place,
// with or without it. So from one pass to the next it has no more than its slice, and everybody else what they have
// anyway.
#pragma once

#include <optional>
#include <vector>

#include "sched/ready_set.h"
#include "sched/types.h"

namespace vgpud {

class Wheel {
 public:
  struct Turn {
    uint32_t id = 0;
    Ns slice{0};
  };
  // A turn taken early counts as this part of a slice at least: who wakes up for nothing pays for the switches.
  static constexpr int kEarlyTurns = 8;
  struct Pace {
    Ns base_slice{0};  // slice of weight 100
    uint32_t averaging_factor = 1;
  };

  // The slice of an entry is `fixed`, or by weight if that is 0.
  void Set(uint32_t id, uint32_t weight, Ns fixed, bool ready);
  // Of an entry that was Set.
  void SetReady(uint32_t id, bool ready) {
    if (ready_.Set(id, ready) && !ready) woken_.Set(id, false);
  }
  bool AnyReady() const { return ready_.count() > 0; }
  bool IsReady(uint32_t id) const { return ready_.Has(id); }
  // Whose turn it is, and moves on. Only with AnyReady().
  Turn Next(const Pace& pace);

  bool Crowded() const { return ready_.count() > 1; }
  // `id`, which is ready, may be next, or no longer.
  void Wake(uint32_t id, bool woken = true) { woken_.Set(id, woken); }
  bool AnyWoken() const { return woken_.count() > 0; }
  // The woken entry whose place comes next, with what its slice has left; it is not woken any more. One that has
  // nothing left, or is in debt, waits for its place. nullopt: nobody. The wheel stands still; TakeEarly follows.
  std::optional<Turn> NextWoken(const Pace& pace);
  // `id` has used so much of its slice before its place.
  void TakeEarly(uint32_t id, Ns used, const Pace& pace);

  void Owe(uint32_t id, Ns debt) { At(id).debt += debt; }
  void Clear(uint32_t id) { At(id).debt = At(id).early = Ns{0}; }
  // What it overran and what it took early.
  Ns Debt(uint32_t id) const { return id < entries_.size() ? entries_[id].debt + Early(id) : Ns{0}; }
  uint64_t round() const { return round_; }

  static Ns Slice(uint32_t weight, Ns fixed, Ns base_slice);

 private:
  struct Entry {
    Ns debt{0};
    Ns fixed{0};
    Ns early{0};        // of the slice at its next place ...
    uint64_t pass = 0;  // ... which is that after so many
    uint32_t weight = kDefaultWeight;
    Ns Full(const Pace& pace) const { return Slice(weight, fixed, pace.base_slice); }
  };
  Entry& At(uint32_t id);
  // How often the wheel has come by its place.
  uint64_t Passes(uint32_t id) const { return round_ + (next_ > id ? 1 : 0); }
  Ns Early(uint32_t id) const { return entries_[id].pass == Passes(id) ? entries_[id].early : Ns{0}; }
  void RepayWholeRounds(const Pace& pace);

  std::vector<Entry> entries_;
  ReadySet ready_;
  ReadySet woken_;     // of those that are ready
  uint32_t next_ = 0;  // where the wheel goes on
  uint64_t round_ = 0;
};

}  // namespace vgpud
