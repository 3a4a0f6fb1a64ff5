// SPDX-License-Identifier: Apache-2.0
// Strict round robin in order of number, with a slice per entry and full repayment of overruns. The building block of
// the rotation: its entries are VFs, or groups of VFs.
//
// Time over the slice is debt. A turn repays debt / averaging factor, rounded up, by being shorter; when that is the
// whole slice or more, the entry is passed over and owes a slice less. Nothing unused is credit.
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
  struct Pace {
    Ns base_slice{0};  // slice of weight 100
    uint32_t averaging_factor = 1;
  };

  // The slice of an entry is `fixed`, or by weight if that is 0.
  void Set(uint32_t id, uint32_t weight, Ns fixed, bool ready);
  // Of an entry that was Set.
  void SetReady(uint32_t id, bool ready) { ready_.Set(id, ready); }
  bool AnyReady() const { return ready_.count() > 0; }
  bool IsReady(uint32_t id) const { return ready_.Has(id); }
  // Whose turn it is, and moves on. Only with AnyReady().
  Turn Next(const Pace& pace);

  void Owe(uint32_t id, Ns debt) { At(id).debt += debt; }
  void Clear(uint32_t id) { At(id).debt = Ns{0}; }
  Ns Debt(uint32_t id) const { return id < entries_.size() ? entries_[id].debt : Ns{0}; }
  uint64_t round() const { return round_; }

  static Ns Slice(uint32_t weight, Ns fixed, Ns base_slice);

 private:
  struct Entry {
    Ns debt{0};
    Ns fixed{0};
    uint32_t weight = kDefaultWeight;
    Ns Full(const Pace& pace) const { return Slice(weight, fixed, pace.base_slice); }
  };
  Entry& At(uint32_t id);
  void RepayWholeRounds(const Pace& pace);

  std::vector<Entry> entries_;
  ReadySet ready_;
  uint32_t next_ = 0;  // where the wheel goes on
  uint64_t round_ = 0;
};

}  // namespace vgpud
