// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/simulation.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "sched/registry.h"
#include "sched/switcher.h"
#include "tools/sim/meter.h"

namespace vgpud::tools {
namespace {

constexpr Ns kSecond = std::chrono::seconds{1};
constexpr size_t kTraceCapacity = 64;

// Are shares what the slices say, so that the lag bound of round robin applies?
bool SharesAreSlices(const Workload& workload, const Policy& policy) {
  if (!policy.YieldsWhenIdle()) return false;
  for (const VfSpec& vf : workload.vfs)
    if (vf.view.group != kNoGroup || vf.view.priority != workload.vfs.front().view.priority) return false;
  return workload.gpu.options.max_wait == Ns{0} && workload.gpu.options.averaging_factor == 1;
}

class Simulation {
 public:
  Simulation(const Workload& workload, const PolicyRow& row, std::unique_ptr<Policy> policy, uint64_t seed,
             const std::function<void(const SliceRecord&)>& on_turn)
      : workload_(workload),
        policy_name_(row.name),
        policy_(std::move(policy)),
        world_(workload, seed, kSimulationStart),
        switcher_(world_, *policy_,
                  {.preempt_timeout = workload.gpu.preempt_timeout,
                   .stays = !workload.gpu.take_back_alone,
                   .hang_limit = workload.gpu.hang_limit,
                   .hang_window = workload.gpu.hang_window}),
        meter_(world_, *policy_, SharesAreSlices(workload, *policy_) && !row.Understands(Knob::kGuarantee)),
        on_turn_(on_turn),
        left_(workload.vfs.size()) {
    world_.SetEvents({
        .on_demand_changed = [this](VfId) { meter_.DemandChanged(); },
        .on_run = [this](VfId vf) { meter_.TurnBegins(vf); },
        .on_left = [this](VfId vf) { Left(vf); },
        .on_reset = [this](VfId vf) { switcher_.Reinstate(vf); },
    });
    switcher_.SetTrace(&trace_);
  }

  Outcome Run() {
    const TimePoint end = kSimulationStart + workload_.duration;
    TimePoint now = kSimulationStart;
    for (;;) {
      world_.AdvanceTo(now);
      if (now >= next_second_) CloseSecond(now);
      RequestChanges(now);
      while (switcher_.PollOnce(now)) ReadTrace();
      ReadTrace();
      if (now >= end) break;
      const bool others = switcher_.state() == WsState::kOff || switcher_.stays();
      const TimePoint next =
          std::min({switcher_.NextPoll(), world_.NextEvent(others), next_second_, NextChange(), end});
      if (Starved()) idle_with_work_ += std::max(Ns{1}, next - now);
      now = std::max(next, now + Ns{1});
    }
    return Summary(now);
  }

 private:
  TimePoint NextChange() const {
    return next_change_ < workload_.changes.size() ? kSimulationStart + workload_.changes[next_change_].at
                                                   : TimePoint::max();
  }
  bool Starved() const {
    if (world_.runnable_count() == 0) return false;
    return switcher_.state() == WsState::kOff ||
           (switcher_.state() == WsState::kRun && !world_.runnable(switcher_.current()));
  }
  // As vgpud does it: a VF that is taken away while it runs is revoked, all else waits for its turn to end.
  void RequestChanges(TimePoint now) {
    for (; NextChange() <= now; ++next_change_) {
      const Change& change = workload_.changes[next_change_];
      world_.Request(change);
      const bool away = change.action == ChangeAction::kLeave || change.action == ChangeAction::kPause ||
                        change.action == ChangeAction::kReset;
      if (away && switcher_.state() == WsState::kRun && switcher_.current() == change.vf) switcher_.Revoke(now);
    }
  }
  void CloseSecond(TimePoint now) {
    meter_.Second(switcher_.AccountAt(now), now, ++seconds_);
    next_second_ += kSecond;
  }
  void Left(VfId vf) {
    left_[Raw(vf)] = switcher_.AccountAt(world_.now()).Of(vf);
    switcher_.Forget(vf);
  }
  void ReadTrace() {
    if (trace_.appended() == turns_read_) return;
    for (SliceRecord turn; reader_.Next(&turn); ++turns_read_) {
      CHECK(turn.start - turn.switch_time >= last_end_);  // one world at a time
      last_end_ = turn.end;
      meter_.TurnEnds(turn, world_.overrun());
      if (on_turn_) on_turn_(turn);
    }
    CHECK(reader_.lost() == 0);
  }
  Outcome Summary(TimePoint now);

  const Workload& workload_;
  const std::string policy_name_;
  const std::unique_ptr<Policy> policy_;
  SliceTrace trace_{kTraceCapacity};
  SimWorld world_;
  Switcher switcher_;
  Meter meter_;
  const std::function<void(const SliceRecord&)>& on_turn_;
  SliceTrace::Reader reader_{trace_};
  std::vector<std::optional<VfAccount>> left_;  // accounts of VFs that are gone, by VF number
  uint64_t turns_read_ = 0;
  size_t next_change_ = 0;
  uint64_t seconds_ = 0;
  TimePoint next_second_ = kSimulationStart + kSecond;
  TimePoint last_end_ = kSimulationStart;
  Ns idle_with_work_{0};
};

Outcome Simulation::Summary(TimePoint now) {
  const Account& account = switcher_.AccountAt(now);
  Outcome outcome;
  outcome.policy = policy_name_;
  outcome.wall = now - kSimulationStart;
  outcome.run_ns = account.run_ns() + account.leave_ns();
  outcome.switch_ns = account.switch_ns();
  outcome.idle_ns = account.idle_ns();
  outcome.idle_with_work = idle_with_work_;
  outcome.turns = trace_.appended();
  outcome.rounds = policy_->round();
  outcome.impossible_events = switcher_.impossible_events();
  outcome.jain = meter_.Jain();
  std::vector<VfView> views;
  for (uint32_t i = 0; i < workload_.vfs.size(); ++i) views.push_back(world_.view(VfId{i}));
  for (uint32_t i = 0; i < workload_.vfs.size(); ++i) {
    const VfView& view = world_.view(VfId{i});
    const SimWorld::VfStats stats = world_.StatsOf(VfId{i});
    const Meter::VfFigures& figures = meter_.Of(VfId{i});
    VfOutcome vf;
    vf.vf = view.vf;
    vf.name = workload_.vfs[i].name;
    vf.weight = view.weight;
    vf.slice = policy_->FullSlice(view);
    vf.account = account.Of(view.vf);
    if (vf.account.slices == 0 && left_[i]) vf.account = *left_[i];
    vf.debt = policy_->Debt(view.vf);
    vf.kernels = stats.kernels;
    vf.served = stats.served;
    vf.present = stats.present;
    vf.worst_wait = stats.worst_wait;
    vf.mean_wait = stats.turns == 0 ? Ns{0} : stats.turns_waited / static_cast<int64_t>(stats.turns);
    vf.wake_wait = account.TimesOf(view.vf).wake_wait;
    vf.wake_bound = policy_->WakeBound(views, view.vf);
    vf.share_error_1s = figures.share_error_1s;
    vf.share_error_60s = figures.share_error_60s;
    vf.lag_of_bound = figures.worst_lag;
    vf.parked = stats.parked;
    outcome.served += vf.served;
    outcome.share_error_1s = std::max(outcome.share_error_1s, vf.share_error_1s);
    outcome.share_error_60s = std::max(outcome.share_error_60s, vf.share_error_60s);
    outcome.lag_of_bound = std::max(outcome.lag_of_bound, vf.lag_of_bound);
    outcome.worst_wait = std::max(outcome.worst_wait, vf.worst_wait);
    outcome.vfs.push_back(vf);
  }
  return outcome;
}

}  // namespace

Result<Outcome> Simulate(const Workload& workload, const std::string& policy, uint64_t seed,
                         const std::function<void(const SliceRecord&)>& on_turn) {
  const PolicyRow* row = TRY(FindPolicy(policy));
  auto made = TRY(MakePolicy(policy, workload.gpu.options));
  return Simulation(workload, *row, std::move(made), seed, on_turn).Run();
}

}  // namespace vgpud::tools
