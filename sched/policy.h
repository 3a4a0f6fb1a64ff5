// SPDX-License-Identifier: Apache-2.0
// The decision interface. A policy is a pure function of what it is shown and of its own books: no clock, no I/O, no
// locks, no logging, so that every scheduling question can be asked in a unit test. One file per policy, one row in
// sched/registry.cc.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sched/options.h"
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
  // order without duplicates; a VF that is not in it takes no part. nullopt: nobody's turn, leave the GPU idle until
  // Wake() at the latest. A policy that never idles while somebody is runnable says so in its own file.
  std::optional<Pick> Next(std::span<const VfView> vfs, TimePoint now);
  // The turn of `pick` is over; `used` is the time for which its VF really held the GPU, revoke and drain included.
  virtual void Ended(const Pick& pick, Ns used, TimePoint now) = 0;
  // The VF is gone: a later VF of the same number starts with empty books.
  void Forget(VfId vf, TimePoint now = TimePoint{});
  // New settings, from the next decision on. Books and the place in the rotation stay.
  virtual void SetOptions(const PolicyOptions& options, TimePoint now) = 0;
  // `vf` takes part again as before another scheduler ended, owing `debt`; rounds go on from `round` at least.
  void Resume(const VfView& vf, Ns debt, uint64_t round, TimePoint now);
  // This policy follows `before`: it takes over what it was shown, all debts, and goes on counting rounds from there.
  void TakeOver(const Policy& before, TimePoint now);

  virtual const PolicyOptions& options() const = 0;
  // The slice of weight 100 now; a goal for the wait makes it follow who has work.
  virtual Ns BaseSlice() const = 0;
  // The slice that `vf` has when it owes nothing.
  virtual Ns FullSlice(const VfView& vf) const = 0;
  // What each VF of `vfs` is entitled to if nothing changes, groups, priority classes, guarantees and limits included:
  // parts of the returned whole, into `out`, which has the size of `vfs`. 0: nobody takes part. A function of `vfs`,
  // options() and BaseSlice() alone.
  virtual uint64_t Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const = 0;
  // Time that `vf` has overdrawn and not repaid yet.
  virtual Ns Debt(VfId vf) const = 0;
  // Does a VF that runs out of work lose the rest of its turn?
  virtual bool YieldsWhenIdle() const = 0;
  // Is a turn ended by force? If not, the running kernel may finish; what it takes longer is debt.
  virtual bool Forced() const { return true; }
  // Does a VF that alone has work have one slice after the other?
  virtual bool NeverIdles() const { return false; }
  // How long `vf`, which has slept for a round and owes nothing, waits for its turn at most when it wakes up, if all of
  // `vfs` that are not paused have work then: turns alone, not the switches and overruns that follow them. A VF with
  // wake_first that wakes up again before its place has come is promised this until its slice is used up. nullopt: the
  // policy implies no bound.
  virtual std::optional<Ns> WakeBound(std::span<const VfView>, VfId) const { return std::nullopt; }
  // With nullopt as the last answer: when time alone makes Next answer otherwise. TimePoint::max(): never.
  virtual TimePoint Wake() const { return TimePoint::max(); }
  // Turns of the wheel so far: grows each time the rotation starts over. Changes are dated with it.
  uint64_t round() const { return rounds_before_ + Rounds(); }

  // The parts of Next, for callers that know what changed: Show costs time per VF, Choose does not.
  void Show(std::span<const VfView> vfs, TimePoint now);
  virtual std::optional<Pick> Choose(TimePoint now) = 0;

 protected:
  // `vf` is new or has changed. One that takes no part is shown as paused.
  virtual void Changed(const VfView& vf, TimePoint now) = 0;
  // Empties the books of `vf`, which takes no part.
  virtual void Clear(VfId vf) = 0;
  // `vf` owes this much more.
  virtual void Owe(VfId vf, Ns debt) = 0;
  virtual uint64_t Rounds() const = 0;
  const std::vector<VfView>& shown() const { return shown_; }  // by VF number

 private:
  void ShowOne(const VfView& vf, TimePoint now);
  void Grow(size_t count);

  std::vector<VfView> shown_;
  uint64_t rounds_before_ = 0;
};

}  // namespace vgpud
