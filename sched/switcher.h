// SPDX-License-Identifier: Apache-2.0
// Drives the world switch of one GPU: asks the policy at turn boundaries, walks the table of world_switch.h over a
// WorldBackend, keeps the account. The only writer of WsState. Time is an argument; nothing here waits: the caller
// calls Poll() again at NextPoll(), or earlier when something may have changed.
#pragma once

#include <optional>
#include <vector>

#include "sched/account/account.h"
#include "sched/anticipation.h"
#include "sched/excuses.h"
#include "sched/policy.h"
#include "sched/trace.h"
#include "sched/world_backend.h"

namespace vgpud {

class Switcher {
 public:
  struct Options {
    Ns preempt_timeout = kWsDrainDeadline;      // how long a revoked VF may take to leave the GPU
    Ns finish_timeout = kWsFinishDeadline;      // how long a kernel may take after a turn that ends without force
    Ns excuse_limit = std::chrono::seconds{1};  // the longest drain of a VF that the host gives no core
    Excuses::Limits excuses{};                  // all its drains that last so; what is beyond is a hang
    // Host delays that are charged to nobody, in percent of the VF's slices; after a rest host_delay_most at once. What
    // is beyond is overrun: a VF that makes itself wait gains no more than this.
    uint32_t host_delay_percent = 25;
    Ns host_delay_most = std::chrono::milliseconds{40};
    bool stays = true;        // a VF that nobody waits for is not taken off the GPU between its slices
    uint32_t hang_limit = 3;  // hangs within hang_window that park a VF
    Ns hang_window = std::chrono::seconds{60};
  };
  Switcher(WorldBackend& backend, Policy& policy, const Options& options);
  // From now on each turn that is over is appended to `trace`, which outlives this. nullptr: to none, as at first.
  void SetTrace(SliceTrace* trace) { trace_ = trace; }

  // Takes every step that is due.
  void Poll(TimePoint now);
  // Takes one step, if one is due; false: none was. For callers with a clock: a time of its own for each step shows
  // what a switch costs.
  bool PollOnce(TimePoint now);
  // When Poll has something to do even if nothing changes. TimePoint::max(): never.
  TimePoint NextPoll() const;
  // Ends the running turn now; no effect when no world runs.
  void Revoke(TimePoint now);
  // A policy that ends turns by force is about to follow (SetPolicy at the next boundary): a kernel of the running turn
  // may finish no longer than its slice.
  void ExpectForce(TimePoint now);
  // An event from outside of the table's own course. One that the present state has no row for is kImpossible.
  void Step(WsEvent event, TimePoint now);
  // From the next decision on `policy` decides, with the debts and rounds of the one before (TurnBoundary only). It
  // outlives this, the one before is no longer used.
  void SetPolicy(Policy& policy, TimePoint now);
  // The VF is gone (TurnBoundary only): its books and its hang history are cleared.
  void Forget(VfId vf);
  // When `vf` hung, of the times that may still count, oldest first; and that it did so before this was made.
  std::span<const TimePoint> HangsOf(VfId vf) const;
  void SetHangs(VfId vf, std::span<const TimePoint> times);
  // An operator reset `vf`: its hang history is cleared.
  void Reinstate(VfId vf);

  WsState state() const { return state_; }
  // The VF on the GPU; meaningless in kOff.
  VfId current() const { return pick_.vf; }
  TimePoint slice_end() const { return slice_end_; }
  // Since when the VF on the GPU has been seen without work; TimePoint::max() if it has some.
  TimePoint idle_since() const { return idle_since_; }
  // Had others work when it got its turn?
  bool others_wait() const { return others_wait_; }
  // Does nobody wait for the end of the running slice? Then Poll is to be called as soon as somebody does.
  bool stays() const { return state_ == WsState::kRun && stays_; }
  // And does it have nothing to do? It keeps the GPU all the same, on nobody's account: Poll is to be called as soon as
  // it has work again.
  bool rests() const { return rests_; }
  // When it had work again after a gap in its turn; long ago if there was none.
  TimePoint back_since() const { return back_since_; }
  // How long the running turn is meant to be.
  Ns slice() const { return pick_.slice; }
  // Brings the account up to `now` and returns it.
  const Account& AccountAt(TimePoint now);
  uint64_t impossible_events() const { return impossible_; }

 private:
  bool NextEvent(TimePoint now, WsEvent* event);
  WsEvent RunEvent(TimePoint now, bool* due);
  WsEvent Choose(TimePoint now);
  void Enter(WsState from, WsEvent on, TimePoint now);
  void TurnOver(TimePoint now);
  // The slice is over, nobody waits, and the same VF has the next one: settled as ever, but it is not taken off the
  // GPU.
  void Stay(TimePoint now);
  // Nobody waits, and the VF has run out of work: its turn is over, but it is not taken off the GPU.
  void Rest(TimePoint now);
  bool RestEnds(TimePoint now);
  // Another turn of the VF that has the GPU.
  void GoOn(TimePoint start, TimePoint now);
  // Shows the account who has work: at a boundary, or since then the VF on the GPU alone, or nobody.
  void Observe(TimePoint now);
  void ObserveAlone(bool runnable, TimePoint now);
  // The running VF has run out of work, has some again, or loses its turn meanwhile.
  void GapBegins(TimePoint now);
  void GapEnds(TimePoint now, void (Anticipation::*how)(VfId, Ns));
  // One more hang; are they hang_limit within hang_window?
  bool CountHang(TimePoint now);
  bool ExcuseDrain(TimePoint now);
  // What of `over`, the time beyond the slice, is charged to nobody.
  Ns HostDelay(Ns over);

  WorldBackend& backend_;
  Policy* policy_;
  const Options options_;
  Account account_;
  std::vector<Activity> activities_;  // of Choose
  Anticipation anticipation_;
  SliceTrace* trace_ = nullptr;
  WsState state_ = WsState::kOff;
  TimePoint state_deadline_ = TimePoint::max();
  Policy::Pick pick_{};
  FeltTimes before_{};  // pick_ got its turn: since its turn before
  TimePoint drain_start_{};
  TimePoint run_start_{};
  TimePoint slice_end_{};
  TimePoint idle_since_ = TimePoint::max();
  TimePoint back_since_{};
  Ns patience_{0};                       // from then on
  TimePoint held_since_{};               // what of the turn anticipation_ does not know of yet
  bool others_wait_ = false;             // at the last boundary
  bool stays_ = false;                   // nobody has come since
  bool rests_ = false;                   // stays_, and its turn is over
  std::span<const VfView> vfs_;          // at the last boundary
  std::vector<VfView> alone_;            // the same, for ObserveAlone
  std::optional<TimePoint> taken_back_;  // the GPU, and not given to anybody since
  TimePoint switch_start_{};             // the last turn's end, or the end of the time without work
  Ns switch_time_{0};                    // of the switch that led to this turn
  TurnEnd end_ = TurnEnd::kSliceEnd;     // why this turn ends
  bool turn_open_ = false;               // pick_ ran and its turn is not settled yet
  bool expect_force_ = false;
  bool forced_ = false;
  bool hung_ = false;
  bool stalled_ = false;
  uint64_t impossible_ = 0;
  std::vector<std::vector<TimePoint>> hangs_;  // by VF number, the last hang_limit of each
  std::vector<Ns> host_delay_used_;            // by VF number: of host_delay_most
  Excuses excuses_;
};

}  // namespace vgpud
