// SPDX-License-Identifier: Apache-2.0
#include "sched/wheel.h"

#include <algorithm>
#include <limits>

namespace vgpud {
namespace {

Ns Repayment(Ns debt, uint32_t averaging_factor) {
  if (averaging_factor == 1) return debt;
  return (debt + Ns{averaging_factor - 1}) / averaging_factor;
}

// How often an entry is passed over before it runs again.
int64_t RoundsToSit(Ns debt, Ns full, uint32_t averaging_factor) {
  const Ns runs_with = (full - Ns{1}) * averaging_factor;
  return (std::max(Ns{0}, debt - runs_with) + full - Ns{1}) / full;
}

}  // namespace

Ns Wheel::Slice(uint32_t weight, Ns fixed, Ns base_slice) {
  if (fixed > Ns{0}) return fixed;
  return std::max(Ns{1}, base_slice * weight / kDefaultWeight);
}

Wheel::Entry& Wheel::At(uint32_t id) {
  if (id >= entries_.size()) entries_.resize(size_t{id} + 1);
  return entries_[id];
}

void Wheel::Set(uint32_t id, uint32_t weight, Ns fixed, bool ready) {
  Entry& entry = At(id);
  entry.weight = weight;
  entry.fixed = fixed;
  SetReady(id, ready);
}

Wheel::Turn Wheel::Next(const Pace& pace) {
  for (uint32_t passed = 0;;) {
    uint32_t id = ready_.From(next_);
    if (id == ReadySet::kNone) {
      ++round_;
      id = ready_.From(0);
    }
    Entry& entry = entries_[id];
    const Ns early = entry.pass == round_ ? entry.early : Ns{0};
    const Ns full = std::max(Ns{0}, entry.Full(pace) - early);
    next_ = id + 1;
    woken_.Set(id, false);
    const Ns repaid = Repayment(entry.debt, pace.averaging_factor);
    if (repaid < full) {
      entry.debt -= repaid;
      return {id, full - repaid};
    }
    entry.debt -= full;
    if (++passed < ready_.count()) continue;
    RepayWholeRounds(pace);
    passed = 0;
  }
}

std::optional<Wheel::Turn> Wheel::NextWoken(const Pace& pace) {
  while (AnyWoken()) {
    uint32_t id = woken_.From(next_);
    if (id == ReadySet::kNone) id = woken_.From(0);
    woken_.Set(id, false);
    const Ns left = entries_[id].Full(pace) - Early(id);
    if (left > Ns{0} && entries_[id].debt == Ns{0}) return Turn{id, left};
  }
  return std::nullopt;
}

void Wheel::TakeEarly(uint32_t id, Ns used, const Pace& pace) {
  Entry& entry = entries_[id];
  const Ns full = entry.Full(pace);
  entry.early = std::min(full, Early(id) + std::max(used, full / kEarlyTurns));
  entry.pass = Passes(id);
}

// Everybody was passed over: the further rounds in which all of them would be are taken at once.
void Wheel::RepayWholeRounds(const Pace& pace) {
  auto rounds = std::numeric_limits<int64_t>::max();
  for (uint32_t id = ready_.From(0); id != ReadySet::kNone; id = ready_.From(id + 1))
    rounds = std::min(rounds, RoundsToSit(entries_[id].debt, entries_[id].Full(pace), pace.averaging_factor));
  for (uint32_t id = ready_.From(0); id != ReadySet::kNone; id = ready_.From(id + 1))
    entries_[id].debt -= rounds * entries_[id].Full(pace);
  round_ += static_cast<uint64_t>(rounds);
}

}  // namespace vgpud
