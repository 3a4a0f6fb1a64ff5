// The decision interface. A policy is a pure function of what it is shown and of its own books: no clock, no I/O, no
// locks, no logging, so that every scheduling question can be asked in a unit test. One file per policy.
#pragma once

#include <optional>
#include <span>

#include "sched/types.h"

namespace vgpud {

class Policy {
 public:
  struct Pick {
    VfId vf{};
    Ns slice{0};  // > 0; shorter than FullSlice when debt is repaid
    bool operator==(const Pick&) const = default;
  };
  virtual ~Policy() = default;

  // Who owns the GPU next, and for how long. Called at a turn boundary, when no world is on the GPU. `vfs` is in VF
  // order without duplicates. nullopt: nobody's turn, leave the GPU idle. A policy that never idles while somebody is
  // runnable says so in its own file.
  virtual std::optional<Pick> Next(std::span<const VfView> vfs, TimePoint now) = 0;
  // The turn of `pick` is over; `used` is the time for which its VF really held the GPU, revoke and drain included.
  virtual void Ended(const Pick& pick, Ns used, TimePoint now) = 0;
  // The VF is gone: a later VF of the same number starts with empty books.
  virtual void Forget(VfId vf) = 0;
  // The slice that `vf` has when it owes nothing. Ratios of it are the shares that VFs are entitled to.
  virtual Ns FullSlice(const VfView& vf) const = 0;
  // Time that `vf` has overdrawn and not repaid yet.
  virtual Ns Debt(VfId vf) const = 0;
  // Does a VF that runs out of work lose the rest of its turn?
  virtual bool YieldsWhenIdle() const = 0;
  // Turns of the wheel so far: grows by 1 each time the rotation starts over. Changes are dated with it.
  virtual uint64_t round() const = 0;
};

}  // namespace vgpud
