// SPDX-License-Identifier: Apache-2.0
// Who is next among VFs in priority classes and tenant groups: three levels, each decided by itself.
//
// Priority class: the most important class with a ready VF runs, but while it does, each lower class with a ready VF
// is owed floor_percent of the time and served when it is owed any. Within a class: a Wheel of groups and of VFs
// without a group. Within a group: a Wheel of its VFs, which share the group's turn; a turn that ends in the middle of
// a member's slice goes on there the next time, unless the member has left the group, and for its present slice at
// most. A group's overrun is the group's debt as well as the VF's, so nobody gains by changing the VF it runs in.
//
// A VF with wake_first that gets work is next within its class, before all others, as long as it, and its group, have
// anything left of the slice of this round (sched/wheel.h).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "sched/policy.h"
#include "sched/wheel.h"

namespace vgpud {

class Rotation {
 public:
  // `ready`: may be picked. Weight, slice, priority and group as in the view; debt moves along.
  void Set(const VfView& vf, bool ready);
  // Only this, of a VF that was Set.
  void SetReady(VfId vf, bool ready);
  void SetOptions(const PolicyOptions& options);
  // nullopt: nobody is ready. Each pick is followed by its Ended before the next one.
  std::optional<Policy::Pick> Next();
  void Ended(const Policy::Pick& pick, Ns used);
  void Owe(VfId vf, Ns debt);
  void Clear(VfId vf);

  Ns Debt(VfId vf) const;
  Ns FullSlice(const VfView& vf) const { return Wheel::Slice(vf.weight, vf.slice, BaseSlice()); }
  // The slice of weight 100 now: options.base_slice, or what options.max_wait and the ready VFs make of it.
  Ns BaseSlice() const { return options_.max_wait == Ns{0} ? options_.base_slice : BaseSliceForGoal(); }
  uint64_t round() const;

 private:
  struct Group {
    Wheel members;                      // by VF number
    Ns left{0};                         // of the group's running turn
    uint32_t cut_vf = ReadySet::kNone;  // whose slice the end of the group's turn cut short ...
    Ns cut_rest{0};                     // ... and what it has left of it
  };
  struct Class {
    Wheel wheel;  // groups by number, then VFs by kMaxGroups + number
    std::array<std::unique_ptr<Group>, kMaxGroups> groups;
    uint8_t current = kNoGroup;  // the group that has its turn
    Ns owed{0};                  // of its floor
  };
  struct Place {
    uint8_t priority = kDefaultPriority;
    uint8_t group = kNoGroup;
    bool ready = false;
    bool wake_first = false;
    uint32_t weight = kDefaultWeight;
    Ns fixed{0};
  };
  struct Open {
    uint8_t top = 0;     // the most important ready class when it was picked
    uint8_t served = 0;  // its own class
    uint8_t ready = 0;   // bit per class with a ready VF
    uint8_t group = kNoGroup;
    bool early = false;  // before its place
    Ns member_slice{0};  // what the VF would have had if the group's turn were long enough
  };
  Wheel& WheelOf(const Place& place) {
    Class& c = classes_[place.priority];
    return place.group == kNoGroup ? c.wheel : MembersOf(c, place.group);
  }
  static Wheel& MembersOf(Class& c, uint8_t group);
  static uint32_t IdIn(const Place& place, VfId vf) { return place.group == kNoGroup ? kMaxGroups + Raw(vf) : Raw(vf); }
  Place& At(VfId vf);
  void DropCut(const Place& place, VfId vf);
  void RefreshGroup(uint8_t priority, uint8_t group);
  Ns BaseSliceForGoal() const;
  void Count(const Place& place, int sign) {
    if (!place.ready) return;
    if (place.fixed > Ns{0})
      ready_fixed_ += sign * place.fixed;
    else
      ready_weight_ += static_cast<uint64_t>(sign) * place.weight;
  }
  bool ChooseClass();
  Wheel::Pace PaceNow() const { return {BaseSlice(), options_.averaging_factor}; }
  void Woke(const Place& place, VfId vf);
  std::optional<Policy::Pick> NextEarly(Class& c, const Wheel::Pace& pace);
  Policy::Pick NextOf(Group& group, const Wheel::Pace& pace);
  void SettleEarly(const Policy::Pick& pick, Ns used);
  void SettleGroup(const Policy::Pick& pick, Ns used);
  void SettleClasses(Ns used);

  PolicyOptions options_;
  std::array<Class, kPriorities> classes_;
  std::vector<Place> places_;  // by VF number
  Open open_;
  uint64_t ready_weight_ = 0;  // of ready VFs whose slice is by weight
  Ns ready_fixed_{0};          // slices of the others
};

}  // namespace vgpud
