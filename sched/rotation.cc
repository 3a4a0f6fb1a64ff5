// SPDX-License-Identifier: Apache-2.0
#include "sched/rotation.h"

#include <algorithm>

namespace vgpud {

Rotation::Place& Rotation::At(VfId vf) {
  if (Raw(vf) >= places_.size()) places_.resize(Raw(vf) + size_t{1});
  return places_[Raw(vf)];
}

Wheel& Rotation::MembersOf(Class& c, uint8_t group) {
  auto& members = c.groups[group];
  if (!members) members = std::make_unique<Group>();
  return members->members;
}

// A rest of a slice in `place` is no longer the VF's.
void Rotation::DropCut(const Place& place, VfId vf) {
  if (place.group == kNoGroup) return;
  const auto& group = classes_[place.priority].groups[place.group];
  if (group && group->cut_vf == Raw(vf)) group->cut_vf = ReadySet::kNone;
}

void Rotation::Set(const VfView& vf, bool ready) {
  Place& place = At(vf.vf);
  const Place before = place;
  place = {vf.priority, vf.group, ready, vf.wake_first, vf.weight, vf.slice};
  Count(before, -1);
  Count(place, +1);
  const bool moved = before.priority != place.priority || before.group != place.group;
  if (moved) {
    DropCut(before, vf.vf);
    Wheel& from = WheelOf(before);
    const uint32_t id = IdIn(before, vf.vf);
    const Ns debt = from.Debt(id);
    from.Set(id, before.weight, before.fixed, false);
    from.Clear(id);
    if (before.group != kNoGroup) RefreshGroup(before.priority, before.group);
    WheelOf(place).Owe(IdIn(place, vf.vf), debt);
  }
  WheelOf(place).Set(IdIn(place, vf.vf), vf.weight, vf.slice, ready);
  if (place.group != kNoGroup) RefreshGroup(place.priority, place.group);
  if (!place.wake_first) WheelOf(place).Wake(IdIn(place, vf.vf), false);
  if (ready && !before.ready) Woke(place, vf.vf);
}

void Rotation::SetReady(VfId vf, bool ready) {
  Place& place = places_[Raw(vf)];
  if (place.ready == ready) return;
  Count(place, -1);
  place.ready = ready;
  Count(place, +1);
  WheelOf(place).SetReady(IdIn(place, vf), ready);
  if (place.group != kNoGroup) RefreshGroup(place.priority, place.group);
  if (ready) Woke(place, vf);
}

void Rotation::Woke(const Place& place, VfId vf) {
  if (!place.wake_first) return;
  WheelOf(place).Wake(IdIn(place, vf));
  if (place.group != kNoGroup) classes_[place.priority].wheel.Wake(place.group);
}

void Rotation::RefreshGroup(uint8_t priority, uint8_t group) {
  Class& c = classes_[priority];
  if (c.groups[group]) c.wheel.Set(group, options_.group_weights[group], Ns{0}, c.groups[group]->members.AnyReady());
}

void Rotation::SetOptions(const PolicyOptions& options) {
  options_ = options;
  for (uint8_t c = 0; c < kPriorities; ++c)
    for (uint8_t g = 0; g < kMaxGroups; ++g) RefreshGroup(c, g);
}

Ns Rotation::BaseSliceForGoal() const {
  const Ns rest = std::max(Ns{0}, options_.max_wait - ready_fixed_);
  const Ns base = rest * kDefaultWeight / static_cast<int64_t>(std::max<uint64_t>(1, ready_weight_));
  return std::clamp(base, options_.min_slice, options_.max_slice);
}

bool Rotation::ChooseClass() {
  open_ = {};
  for (uint8_t c = 0; c < kPriorities; ++c) {
    if (!classes_[c].wheel.AnyReady()) {
      classes_[c].owed = std::min(classes_[c].owed, Ns{0});
      continue;
    }
    open_.ready = static_cast<uint8_t>(open_.ready | 1u << c);
    open_.top = c;
  }
  open_.served = open_.top;
  for (uint8_t c = 0; c < open_.top; ++c)
    if ((open_.ready >> c & 1) != 0 && classes_[c].owed > Ns{0}) {
      open_.served = c;
      break;
    }
  return open_.ready != 0;
}

// Who is alone in its class is next anyway.
std::optional<Policy::Pick> Rotation::NextEarly(Class& c, const Wheel::Pace& pace) {
  while (const auto turn = c.wheel.NextWoken(pace)) {
    if (turn->id >= kMaxGroups) {
      if (!c.wheel.Crowded()) return std::nullopt;
      return Policy::Pick{VfId{turn->id - kMaxGroups}, turn->slice};
    }
    Wheel& members = c.groups[turn->id]->members;
    if (!c.wheel.Crowded() && !members.Crowded()) return std::nullopt;
    const auto member = members.NextWoken(pace);
    if (!member) continue;
    if (members.AnyWoken()) c.wheel.Wake(turn->id);
    open_.group = static_cast<uint8_t>(turn->id);
    return Policy::Pick{VfId{member->id}, std::min(member->slice, turn->slice)};
  }
  return std::nullopt;
}

std::optional<Policy::Pick> Rotation::Next() {
  if (!ChooseClass()) return std::nullopt;
  const Wheel::Pace pace = PaceNow();
  Class& c = classes_[open_.served];
  if (const auto pick = NextEarly(c, pace)) {
    open_.early = true;
    return pick;
  }
  const bool goes_on =
      c.current != kNoGroup && c.groups[c.current]->left > Ns{0} && c.groups[c.current]->members.AnyReady();
  if (!goes_on) {
    const Wheel::Turn turn = c.wheel.Next(pace);
    c.current = kNoGroup;
    if (turn.id >= kMaxGroups) return Policy::Pick{VfId{turn.id - kMaxGroups}, turn.slice};
    c.current = static_cast<uint8_t>(turn.id);
    c.groups[c.current]->left = turn.slice;
  }
  open_.group = c.current;
  return NextOf(*c.groups[c.current], pace);
}

Policy::Pick Rotation::NextOf(Group& group, const Wheel::Pace& pace) {
  Wheel::Turn turn;
  if (group.cut_vf != ReadySet::kNone && group.members.IsReady(group.cut_vf)) {
    const Place& place = places_[group.cut_vf];
    turn = {group.cut_vf, std::min(group.cut_rest, Wheel::Slice(place.weight, place.fixed, pace.base_slice))};
  } else {
    turn = group.members.Next(pace);
  }
  group.cut_vf = ReadySet::kNone;
  open_.member_slice = turn.slice;
  return {VfId{turn.id}, std::min(turn.slice, group.left)};
}

void Rotation::Ended(const Policy::Pick& pick, Ns used) {
  if (open_.early)
    SettleEarly(pick, used);
  else if (open_.group != kNoGroup)
    SettleGroup(pick, used);
  else if (used > pick.slice)
    classes_[open_.served].wheel.Owe(kMaxGroups + Raw(pick.vf), used - pick.slice);
  SettleClasses(used);
}

void Rotation::SettleEarly(const Policy::Pick& pick, Ns used) {
  Class& c = classes_[open_.served];
  const Ns over = std::max(Ns{0}, used - pick.slice);
  const auto settle = [&](Wheel& wheel, uint32_t id) {
    wheel.TakeEarly(id, used - over, PaceNow());
    wheel.Owe(id, over);
  };
  if (open_.group == kNoGroup) {
    settle(c.wheel, kMaxGroups + Raw(pick.vf));
    return;
  }
  settle(c.wheel, open_.group);
  settle(c.groups[open_.group]->members, Raw(pick.vf));
}

void Rotation::SettleGroup(const Policy::Pick& pick, Ns used) {
  Class& c = classes_[open_.served];
  Group& group = *c.groups[open_.group];
  if (used > group.left) c.wheel.Owe(open_.group, used - group.left);
  group.left = std::max(Ns{0}, group.left - used);
  if (used > open_.member_slice) group.members.Owe(Raw(pick.vf), used - open_.member_slice);
  if (used < open_.member_slice && used >= pick.slice) {
    group.cut_vf = Raw(pick.vf);
    group.cut_rest = open_.member_slice - used;
  }
}

void Rotation::SettleClasses(Ns used) {
  for (uint8_t c = 0; c < open_.top; ++c) {
    if ((open_.ready >> c & 1) == 0) continue;
    classes_[c].owed += used * options_.floor_percent / 100;
    if (c == open_.served) classes_[c].owed -= used;
  }
}

void Rotation::Owe(VfId vf, Ns debt) {
  const Place& place = At(vf);
  WheelOf(place).Owe(IdIn(place, vf), debt);
}

void Rotation::Clear(VfId vf) {
  const Place& place = At(vf);
  DropCut(place, vf);
  WheelOf(place).Clear(IdIn(place, vf));
}

Ns Rotation::Debt(VfId vf) const {
  if (Raw(vf) >= places_.size()) return Ns{0};
  const Place& place = places_[Raw(vf)];
  const Class& c = classes_[place.priority];
  if (place.group == kNoGroup) return c.wheel.Debt(kMaxGroups + Raw(vf));
  return c.groups[place.group] ? c.groups[place.group]->members.Debt(Raw(vf)) : Ns{0};
}

uint64_t Rotation::round() const {
  uint64_t sum = 0;
  for (const Class& c : classes_) sum += c.wheel.round();
  return sum;
}

}  // namespace vgpud
