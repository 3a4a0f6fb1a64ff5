// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/sim_world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vgpud::tools {
namespace {

constexpr Ns kNever = Distribution::kLongest;
// The first stream of random numbers of this kind; those of the work have lower numbers.
constexpr uint64_t kLeaving = uint64_t{1} << 32;

}  // namespace

SimWorld::SimWorld(const Workload& workload, uint64_t seed, TimePoint start)
    : workload_(workload), random_(seed, 0), now_(start) {
  const TimePoint midnight = start - workload.time_of_day;
  vfs_.reserve(workload.vfs.size());
  for (uint32_t i = 0; i < workload.vfs.size(); ++i) {
    const VfSpec& spec = workload.vfs[i];
    Vf& vf = vfs_.emplace_back(spec, Random(seed, i + 1), Random(seed, kLeaving + i), midnight);
    vf.view = spec.view;
    const auto first = std::find_if(workload.changes.begin(), workload.changes.end(), [&](const Change& c) {
      return c.vf == vf.view.vf && c.action != ChangeAction::kNone;
    });
    if (first == workload.changes.end() || first->action != ChangeAction::kJoin) Join(vf);
  }
  RebuildViews();
}

void SimWorld::Schedule(Vf& vf) {
  if (vf.load.next() != TimePoint::max()) wakes_.push({vf.load.next(), Raw(vf.view.vf)});
}

// Brings what the scheduler sees of `vf` in line with its state, which changed at `at`.
void SimWorld::Refresh(Vf& vf, TimePoint at) {
  vf.view.paused = vf.held || vf.stats.parked;
  const bool runnable = vf.joined && !vf.view.paused && (vf.load.has_work() || vf.hung);
  const bool changed = runnable != vf.view.runnable;
  vf.view.runnable = runnable;
  if (vf.joined && Raw(vf.view.vf) < view_of_.size() && view_of_[Raw(vf.view.vf)] < views_.size())
    views_[view_of_[Raw(vf.view.vf)]] = vf.view;
  if (!changed) return;
  runnable_count_ += runnable ? 1 : -1;
  vf.unchanged_since = at;
  vf.waiting_since = at;
  if (events_.on_demand_changed) events_.on_demand_changed(vf.view.vf);
}

void SimWorld::RebuildViews() {
  views_.clear();
  view_of_.assign(vfs_.size(), SIZE_MAX);
  for (const Vf& vf : vfs_) {
    if (!vf.joined) continue;
    view_of_[Raw(vf.view.vf)] = views_.size();
    views_.push_back(vf.view);
  }
}

void SimWorld::Join(Vf& vf) {
  if (vf.joined) return;
  vf.joined = true;
  vf.joined_at = now_;
  if (vf.spec->hang_every) vf.until_hang = vf.spec->hang_every->Sample(vf.load.random());
  vf.load.Start(now_);
  Schedule(vf);
}

void SimWorld::Leave(Vf& vf) {
  if (!vf.joined) return;
  vf.load.Stop();
  vf.stats.present += now_ - vf.joined_at;
  vf.hung = vf.held = vf.stats.parked = false;
  vf.joined = false;
  Refresh(vf, now_);
}

SimWorld::VfStats SimWorld::StatsOf(VfId id) const {
  const Vf& vf = vfs_[Raw(id)];
  VfStats stats = vf.stats;
  if (vf.joined) stats.present += now_ - vf.joined_at;
  stats.kernels = static_cast<uint64_t>(stats.served / std::max(Ns{1}, vf.spec->kernel.Mean()));
  if (vf.view.runnable && running_ != id) stats.worst_wait = std::max(stats.worst_wait, now_ - vf.waiting_since);
  return stats;
}

// The VF on the GPU works for `length`, from now_ on.
void SimWorld::Work(Ns length) {
  if (!running_ || length <= Ns{0}) return;
  Vf& vf = At(*running_);
  if (vf.hung || !vf.load.has_work()) return;
  const Ns used = vf.load.Consume(now_, length);
  vf.stats.served += used;
  if (vf.spec->hang_every) {
    vf.until_hang -= used;
    if (vf.until_hang <= Ns{0}) {
      vf.hung = true;
      vf.until_hang = vf.spec->hang_every->Sample(vf.load.random());
    }
  }
  if (vf.load.has_work() || vf.hung) return;
  Refresh(vf, now_ + used);
  Schedule(vf);
}

void SimWorld::AdvanceTo(TimePoint now) {
  CHECK(now >= now_);
  Work(now - now_);
  now_ = now;
  while (!wakes_.empty() && wakes_.top().at <= now_) {
    const Wake wake = wakes_.top();
    wakes_.pop();
    Vf& vf = vfs_[wake.vf];
    if (vf.load.next() != wake.at) continue;  // overtaken by a kill, a leave or an earlier entry
    vf.load.Fire();
    Schedule(vf);
    Refresh(vf, wake.at);
  }
}

TimePoint SimWorld::NextEvent(bool others) const {
  TimePoint next = verb_done_;
  if (others && !wakes_.empty()) next = std::min(next, wakes_.top().at);
  if (!running_) return next;
  const Vf& vf = vfs_[Raw(*running_)];
  next = std::min(next, vf.load.next());
  if (vf.load.has_work() && vf.load.left() < kNever && !vf.hung) next = std::min(next, now_ + vf.load.left());
  return next;
}

std::span<const VfView> SimWorld::TurnBoundary(TimePoint) {
  CHECK(!running_);
  if (requested_.empty()) return views_;
  const auto requested = std::exchange(requested_, {});
  for (const Change& change : requested) Apply(change);
  RebuildViews();
  return views_;
}

void SimWorld::Apply(const Change& change) {
  Vf& vf = At(change.vf);
  if (change.weight) vf.view.weight = *change.weight;
  if (change.slice) vf.view.slice = *change.slice;
  if (change.guarantee) vf.view.guarantee = *change.guarantee;
  if (change.limit) vf.view.limit = *change.limit;
  switch (change.action) {
    case ChangeAction::kNone:
      if (events_.on_demand_changed) events_.on_demand_changed(change.vf);
      return;
    case ChangeAction::kJoin:
      Join(vf);
      break;
    case ChangeAction::kLeave:
      Leave(vf);
      if (events_.on_left) events_.on_left(change.vf);
      return;
    case ChangeAction::kPause:
      vf.held = true;
      break;
    case ChangeAction::kResume:
      vf.held = false;
      break;
    case ChangeAction::kReset:
      vf.stats.parked = vf.hung = false;
      vf.load.Kill(now_);
      Schedule(vf);
      if (events_.on_reset) events_.on_reset(change.vf);
      break;
  }
  Refresh(vf, now_);
}

bool SimWorld::HasWork(VfId vf) { return At(vf).load.has_work() || At(vf).hung; }

void SimWorld::Load(VfId vf) {
  CHECK(!running_);
  const GpuModel& gpu = workload_.gpu;
  verb_done_ = now_ + (last_ == vf ? gpu.resume_cost : gpu.switch_cost).Sample(random_);
  last_ = vf;
}

void SimWorld::Run(VfId id, TimePoint deadline) {
  CHECK(!running_);
  running_ = id;
  verb_done_ = TimePoint::max();
  deadline_ = deadline;
  finishing_ = false;
  Vf& vf = At(id);
  const Ns waited = vf.view.runnable ? now_ - vf.waiting_since : Ns{0};
  vf.stats.worst_wait = std::max(vf.stats.worst_wait, waited);
  vf.stats.turns_waited += waited;
  ++vf.stats.turns;
  if (events_.on_run) events_.on_run(id);
}

bool SimWorld::MayStay(VfId id) { return requested_.empty() && runnable_count_ == (At(id).view.runnable ? 1u : 0u); }

void SimWorld::SetDeadline(VfId, TimePoint end, bool) { deadline_ = end; }

// The kernel that runs now is somewhere on its way.
Ns SimWorld::RestOfKernel(Vf& vf) {
  const double rest = static_cast<double>(vf.spec->kernel.Sample(vf.random).count()) * vf.random.Unit();
  return std::min(Ns{static_cast<int64_t>(rest)}, vf.load.left());
}

void SimWorld::Finish(VfId id) {
  Vf& vf = At(id);
  deadline_ = now_;
  finishing_ = true;
  const Ns rest = vf.hung ? kNever : HasWork(id) ? RestOfKernel(vf) : Ns{0};
  verb_done_ = rest >= kNever / 2 ? TimePoint::max() : now_ + rest;
}

Ns SimWorld::DrainTime(Vf& vf) {
  if (vf.hung) return kNever;
  if (!vf.load.has_work()) return Ns{0};
  const GpuModel& gpu = workload_.gpu;
  Ns time = gpu.preempt_latency.Sample(random_);
  if (gpu.preempts_at_kernel_end && !finishing_) time += RestOfKernel(vf);
  if (vf.random.Unit() < vf.spec->overrun_chance) time += vf.spec->overrun.Sample(vf.random);
  return time < kNever / 2 ? time : kNever;
}

void SimWorld::Drain(VfId id) {
  const Ns time = DrainTime(At(id));
  verb_done_ = time == kNever ? TimePoint::max() : now_ + time;
}

void SimWorld::EndTurn() {
  if (!running_) return;
  At(*running_).waiting_since = now_;
  overrun_ = std::max(Ns{0}, now_ - deadline_);
  running_.reset();
}

void SimWorld::Save(VfId) {
  EndTurn();
  verb_done_ = now_;
}

void SimWorld::Flr(VfId id) {
  Vf& vf = At(id);
  last_.reset();
  vf.hung = false;
  vf.load.Kill(now_);
  Schedule(vf);
  Refresh(vf, now_);
  verb_done_ = now_ + workload_.gpu.reset_cost.Sample(random_);
}

void SimWorld::Park(VfId id) {
  EndTurn();
  Vf& vf = At(id);
  vf.stats.parked = true;
  Refresh(vf, now_);
}

bool SimWorld::Complete(WsState, VfId) {
  if (now_ < verb_done_) return false;
  verb_done_ = TimePoint::max();
  return true;
}

}  // namespace vgpud::tools
