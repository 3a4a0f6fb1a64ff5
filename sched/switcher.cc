// SPDX-License-Identifier: Apache-2.0
#include "sched/switcher.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace vgpud {
namespace {

// What Complete() means in each state that waits for the backend.
struct Completion {
  WsState state;
  WsEvent event;
};
constexpr Completion kCompletions[] = {
    {WsState::kLoad, WsEvent::kLoaded},
    {WsState::kFinish, WsEvent::kFinished},
    {WsState::kDrain, WsEvent::kDrained},
    {WsState::kFlr, WsEvent::kFlrDone},
};

// What is done on entering a state; kRun and the choice of the next world have logic of their own.
struct Entry {
  WsState state;
  void (WorldBackend::*verb)(VfId);
  GpuUse use;
};
constexpr Entry kEntries[] = {
    {WsState::kLoad, &WorldBackend::Load, GpuUse::kSwitch},   {WsState::kDrain, &WorldBackend::Drain, GpuUse::kLeave},
    {WsState::kSave, &WorldBackend::Save, GpuUse::kSwitch},   {WsState::kFlr, &WorldBackend::Flr, GpuUse::kLeave},
    {WsState::kParked, &WorldBackend::Park, GpuUse::kSwitch}, {WsState::kFinish, &WorldBackend::Finish, GpuUse::kRun},
};

TurnEnd EndOf(WsEvent event) {
  if (event == WsEvent::kYield) return TurnEnd::kYield;
  if (event == WsEvent::kRevoke) return TurnEnd::kRevoke;
  return TurnEnd::kSliceEnd;
}

Ns Sum(const FeltTimes& times, std::initializer_list<Felt> kinds) {
  uint64_t sum = 0;
  for (const Felt kind : kinds) sum += times[static_cast<size_t>(kind)];
  return Ns{static_cast<int64_t>(sum)};
}

}  // namespace

Switcher::Switcher(WorldBackend& backend, Policy& policy, const Options& options)
    : backend_(backend), policy_(&policy), options_(options), excuses_(options.excuses) {}

void Switcher::Poll(TimePoint now) {
  while (PollOnce(now)) {
  }
}

bool Switcher::PollOnce(TimePoint now) {
  WsEvent event;
  if (!NextEvent(now, &event)) return false;
  Step(event, now);
  return true;
}

bool Switcher::NextEvent(TimePoint now, WsEvent* event) {
  if (state_ == WsState::kRun) {
    bool due = false;
    *event = RunEvent(now, &due);
    return due;
  }
  if (state_ == WsState::kOff) {
    *event = Choose(now);
    return *event == WsEvent::kNext;
  }
  if (state_ == WsState::kParked || (state_ == WsState::kSave && backend_.Complete(state_, pick_.vf))) {
    *event = Choose(now);
    return true;
  }
  for (const Completion& c : kCompletions)
    if (c.state == state_ && backend_.Complete(state_, pick_.vf)) {
      *event = c.event;
      if (state_ == WsState::kFlr && CountHang(now)) *event = WsEvent::kHangLimit;
      return true;
    }
  if (now < state_deadline_) return false;
  const bool left_behind = state_ == WsState::kDrain && backend_.LeaveBehind(pick_.vf);
  *event = left_behind ? WsEvent::kDrained : WsEvent::kAckTimeout;
  return left_behind || !ExcuseDrain(now);
}

// A VF that was not given a core cannot have seen the revoke: it gets as much time again, up to the limits.
bool Switcher::ExcuseDrain(TimePoint now) {
  if (state_ != WsState::kDrain || now - drain_start_ >= options_.excuse_limit || !backend_.Excused(pick_.vf))
    return false;
  if (!excuses_.Allow(pick_.vf, now - drain_start_, now)) return false;
  state_deadline_ = std::min(now + options_.preempt_timeout, drain_start_ + options_.excuse_limit);
  stalled_ = true;
  return true;
}

WsEvent Switcher::RunEvent(TimePoint now, bool* due) {
  if (rests_) {
    *due = RestEnds(now);
    return WsEvent::kYield;
  }
  if (stays_ && !backend_.MayStay(pick_.vf)) {
    stays_ = false;
    backend_.SetDeadline(pick_.vf, policy_->Forced() ? slice_end_ : TimePoint::max(), true);
  }
  while (stays_ && now >= slice_end_) Stay(now);
  if (now >= slice_end_) {
    *due = true;
    return policy_->Forced() || expect_force_ || !backend_.HasWork(pick_.vf) ? WsEvent::kSliceEnd : WsEvent::kSoftEnd;
  }
  if (!policy_->YieldsWhenIdle() || backend_.HasWork(pick_.vf)) {
    GapEnds(now, &Anticipation::Returned);
    return WsEvent::kYield;
  }
  if (idle_since_ == TimePoint::max()) GapBegins(now);
  *due = now - idle_since_ >= patience_;
  if (*due && stays_) {
    *due = false;
    Rest(now);
  }
  return WsEvent::kYield;
}

void Switcher::Stay(TimePoint now) {
  const TimePoint end = slice_end_;
  anticipation_.Held(pick_.vf, std::max(Ns{0}, end - held_since_), pick_.slice);
  held_since_ = std::max(held_since_, end);
  forced_ = false;
  end_ = TurnEnd::kSliceEnd;
  TurnOver(end);
  Observe(now);
  GoOn(end, now);
}

void Switcher::Rest(TimePoint now) {
  GapEnds(now, &Anticipation::GaveUp);
  anticipation_.Held(pick_.vf, std::max(Ns{0}, now - held_since_), pick_.slice);
  forced_ = false;
  end_ = TurnEnd::kYield;
  TurnOver(now);
  rests_ = true;
  ObserveAlone(false, now);
  account_.Use(GpuUse::kIdle, pick_.vf, now);
}

void Switcher::GoOn(TimePoint start, TimePoint now) {
  if (const auto pick = policy_->Choose(start); pick && pick->vf == pick_.vf) pick_ = *pick;
  before_ = account_.SinceLastTurn(pick_.vf);
  turn_open_ = true;
  switch_time_ = Ns{0};
  run_start_ = start;
  slice_end_ = start + pick_.slice;
  account_.Use(GpuUse::kRun, pick_.vf, now);
  backend_.SetDeadline(pick_.vf, slice_end_, false);
}

// While it rests; true: somebody else has come.
bool Switcher::RestEnds(TimePoint now) {
  if (!backend_.MayStay(pick_.vf)) {
    stays_ = rests_ = false;
    held_since_ = slice_end_ = switch_start_ = now;
    return true;
  }
  if (!backend_.HasWork(pick_.vf)) return false;
  rests_ = false;
  held_since_ = now;
  ObserveAlone(true, now);
  GoOn(now, now);
  return false;
}

void Switcher::GapBegins(TimePoint now) {
  idle_since_ = now;
  anticipation_.Held(pick_.vf, now - held_since_, pick_.slice);
  held_since_ = now;
  patience_ = anticipation_.Patience(pick_.vf, slice_end_ - now);
}

void Switcher::GapEnds(TimePoint now, void (Anticipation::*how)(VfId, Ns)) {
  if (idle_since_ == TimePoint::max()) return;
  const Ns gap = std::min(now, slice_end_) - idle_since_;
  (anticipation_.*how)(pick_.vf, gap);
  account_.Gap(idle_since_, now);
  if (others_wait_) account_.Waited(pick_.vf, gap);
  idle_since_ = TimePoint::max();
  back_since_ = now;
}

// The turn boundary. The pick of the turn before stays in place when nobody follows.
WsEvent Switcher::Choose(TimePoint now) {
  TurnOver(now);
  const auto vfs = vfs_ = backend_.TurnBoundary(now);
  Observe(now);
  const PolicyOptions& options = policy_->options();
  anticipation_.SetOptions({options.idle_grace, options.anticipate_percent, options.anticipate_most});
  const auto pick = policy_->Next(vfs, now);
  if (!pick) return WsEvent::kNobody;
  pick_ = *pick;
  before_ = account_.SinceLastTurn(pick_.vf);
  others_wait_ =
      std::any_of(vfs.begin(), vfs.end(), [&](const VfView& vf) { return vf.runnable && vf.vf != pick_.vf; });
  return WsEvent::kNext;
}

void Switcher::Observe(TimePoint now) {
  activities_.clear();
  for (const VfView& vf : vfs_) activities_.push_back(backend_.ActivityOf(vf.vf));
  account_.Observe(vfs_, *policy_, now, activities_);
}

void Switcher::ObserveAlone(bool runnable, TimePoint now) {
  alone_.assign(vfs_.begin(), vfs_.end());
  for (VfView& vf : alone_)
    if (vf.vf == pick_.vf) vf.runnable = runnable;
  const auto before = std::exchange(vfs_, alone_);
  Observe(now);
  vfs_ = before;
}

void Switcher::Step(WsEvent event, TimePoint now) {
  if (!HasWsRow(state_, event)) {
    ++impossible_;
    event = WsEvent::kImpossible;
  }
  const WsRow& row = kWorldSwitch[FindWsRow(state_, event)];
  const WsState from = state_;
  state_ = row.to;
  Ns deadline = row.deadline;
  if (row.to == WsState::kDrain) deadline = options_.preempt_timeout;
  if (row.to == WsState::kFinish) deadline = options_.finish_timeout;
  state_deadline_ = deadline == Ns{0} ? TimePoint::max() : now + deadline;
  Enter(from, event, now);
}

void Switcher::Enter(WsState from, WsEvent on, TimePoint now) {
  if (from == WsState::kRun || from == WsState::kFinish) {
    rests_ = stays_ = false;
    forced_ = on != WsEvent::kYield && on != WsEvent::kFinished && backend_.HasWork(pick_.vf);
    GapEnds(now, on == WsEvent::kYield ? &Anticipation::GaveUp : &Anticipation::CutShort);
    if (from == WsState::kRun) anticipation_.Held(pick_.vf, std::max(Ns{0}, now - held_since_), pick_.slice);
    end_ = EndOf(on);
    if (state_ != WsState::kFinish) taken_back_ = now;
  }
  if (state_ == WsState::kDrain) drain_start_ = now;
  // Its slice was over before it was told so.
  if (state_ == WsState::kDrain && from == WsState::kRun && slice_end_ < now)
    account_.Use(GpuUse::kLeave, pick_.vf, slice_end_);
  if (from == WsState::kOff) switch_start_ = now;
  if (state_ == WsState::kOff) {
    taken_back_.reset();
    account_.Use(GpuUse::kIdle, pick_.vf, now);
  }
  if (state_ == WsState::kFlr) hung_ = turn_open_;
  if (state_ == WsState::kRun) {
    turn_open_ = true;
    run_start_ = held_since_ = now;
    slice_end_ = now + pick_.slice;
    idle_since_ = TimePoint::max();
    switch_time_ = now - switch_start_;
    if (taken_back_) account_.Switched(now - *taken_back_);
    taken_back_.reset();
    account_.Use(GpuUse::kRun, pick_.vf, now);
    backend_.Run(pick_.vf, policy_->Forced() ? slice_end_ : TimePoint::max());
    stays_ = options_.stays && !others_wait_ && policy_->NeverIdles();
    if (stays_) backend_.SetDeadline(pick_.vf, slice_end_, false);
    return;
  }
  for (const Entry& entry : kEntries) {
    if (entry.state != state_) continue;
    account_.Use(turn_open_ ? entry.use : GpuUse::kSwitch, pick_.vf, now);
    (backend_.*entry.verb)(pick_.vf);
  }
  if (state_ == WsState::kSave || state_ == WsState::kParked) TurnOver(now);
}

// Settles the turn: what was used over the slice becomes debt.
void Switcher::TurnOver(TimePoint now) {
  if (!turn_open_) return;
  turn_open_ = false;
  const Ns used = now - run_start_;
  const Ns over = std::max(Ns{0}, used - pick_.slice), delay = HostDelay(over);
  policy_->Ended(pick_, used - delay, now);
  account_.Ended({pick_.vf, over - delay, used >= pick_.slice, forced_, hung_, stalled_, delay});
  if (stalled_) excuses_.Charge(pick_.vf, now - drain_start_, now);
  switch_start_ = now;
  if (trace_ != nullptr)
    trace_->Append({.vf = pick_.vf,
                    .reason = hung_ ? TurnEnd::kHang : end_,
                    .start = run_start_,
                    .end = now,
                    .switch_time = switch_time_,
                    .host_delay = delay,
                    .thought = Sum(before_, {Felt::kThinking}),
                    .waited = Sum(before_, {Felt::kOthers, Felt::kSwitching, Felt::kStalled, Felt::kHeld}),
                    .round = policy_->round()});
  stalled_ = false;
  hung_ = false;
}

// A turn that was excused, or ended with a kill, is repaid in full.
Ns Switcher::HostDelay(Ns over) {
  if (Raw(pick_.vf) >= host_delay_used_.size()) host_delay_used_.resize(Raw(pick_.vf) + 1);
  Ns& used = host_delay_used_[Raw(pick_.vf)];
  used = std::max(Ns{0}, used - pick_.slice * options_.host_delay_percent / 100);
  if (over == Ns{0} || stalled_ || hung_) return Ns{0};
  const Ns delay = std::min({over, backend_.HostDelay(pick_.vf), options_.host_delay_most - used});
  used += delay;
  return delay;
}

bool Switcher::CountHang(TimePoint now) {
  if (Raw(pick_.vf) >= hangs_.size()) hangs_.resize(Raw(pick_.vf) + 1);
  auto& recent = hangs_[Raw(pick_.vf)];
  std::erase_if(recent, [&](TimePoint t) { return now - t > options_.hang_window; });
  recent.push_back(now);
  return recent.size() >= options_.hang_limit;
}

std::span<const TimePoint> Switcher::HangsOf(VfId vf) const {
  return Raw(vf) < hangs_.size() ? std::span<const TimePoint>(hangs_[Raw(vf)]) : std::span<const TimePoint>();
}

void Switcher::SetHangs(VfId vf, std::span<const TimePoint> times) {
  if (Raw(vf) >= hangs_.size()) hangs_.resize(Raw(vf) + size_t{1});
  hangs_[Raw(vf)].assign(times.begin(), times.end());
}

TimePoint Switcher::NextPoll() const {
  if (state_ == WsState::kOff) return policy_->Wake();
  if (state_ != WsState::kRun) return state_deadline_;
  if (rests_) return TimePoint::max();
  if (idle_since_ == TimePoint::max()) return slice_end_;
  return std::min(slice_end_, idle_since_ + patience_);
}

void Switcher::Revoke(TimePoint now) {
  if (state_ == WsState::kRun || state_ == WsState::kFinish) Step(WsEvent::kRevoke, now);
}

void Switcher::ExpectForce(TimePoint now) {
  expect_force_ = true;
  if (state_ == WsState::kFinish) Step(WsEvent::kRevoke, now);
}

void Switcher::SetPolicy(Policy& policy, TimePoint now) {
  expect_force_ = false;
  account_.PolicyChanged();
  policy.TakeOver(*policy_, now);
  policy_ = &policy;
}

void Switcher::Forget(VfId vf) {
  policy_->Forget(vf);
  account_.Forget(vf);
  anticipation_.Forget(vf);
  if (Raw(vf) < host_delay_used_.size()) host_delay_used_[Raw(vf)] = Ns{0};
  Reinstate(vf);
}

void Switcher::Reinstate(VfId vf) {
  if (Raw(vf) < hangs_.size()) hangs_[Raw(vf)].clear();
  excuses_.Forget(vf);
}

const Account& Switcher::AccountAt(TimePoint now) {
  account_.Advance(now);
  return account_;
}

}  // namespace vgpud
