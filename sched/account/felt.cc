// SPDX-License-Identifier: Apache-2.0
#include "sched/account/felt.h"

#include <algorithm>

namespace vgpud {
namespace {

constexpr size_t Index(Felt kind) { return static_cast<size_t>(kind); }

uint64_t Overlap(TimePoint a, TimePoint b, TimePoint from, TimePoint to) {
  const auto common = std::min(b, to) - std::max(a, from);
  return common > Ns{0} ? static_cast<uint64_t>(common.count()) : 0;
}

// What having work is worth while the GPU is used like this by somebody else. An idle GPU that a VF with work was shown
// to at the boundary was withheld from it; one that did not know yet was being woken.
Felt WaitDuring(GpuUse use, bool known) {
  switch (use) {
    case GpuUse::kIdle:
      return known ? Felt::kHeld : Felt::kSwitching;
    case GpuUse::kSwitch:
      return Felt::kSwitching;
    case GpuUse::kStall:
      return Felt::kStalled;
    case GpuUse::kRun:
    case GpuUse::kLeave:
      return Felt::kOthers;
  }
  return Felt::kOthers;
}

}  // namespace

FeltAccount::Vf& FeltAccount::At(VfId vf) {
  if (Raw(vf) >= vfs_.size()) vfs_.resize(Raw(vf) + 1);
  return vfs_[Raw(vf)];
}

FeltTimes FeltAccount::Of(VfId vf) const { return Raw(vf) < vfs_.size() ? vfs_[Raw(vf)].times : FeltTimes{}; }

FeltTimes FeltAccount::Taken(VfId id) {
  Vf& vf = At(id);
  FeltTimes added{};
  for (size_t i = 0; i < kFeltKinds; ++i) added[i] = vf.times[i] - std::exchange(vf.taken[i], vf.times[i]);
  return added;
}

void FeltAccount::Use(GpuUse use, VfId owner, TimePoint now) {
  if (!segments_.empty()) {
    now = std::max(now, segments_.back().from);
    segments_.back().to = now;
  }
  segments_.push_back({now, TimePoint::max(), use, owner});
}

void FeltAccount::Gap(TimePoint from, TimePoint to) {
  if (from < to) gaps_.emplace_back(from, to);
}

void FeltAccount::AddWork(Vf& vf, VfId id, TimePoint from, TimePoint to) {
  for (const Segment& segment : segments_) {
    uint64_t ns = Overlap(segment.from, segment.to, from, to);
    if (ns == 0) continue;
    const bool leaves = segment.use == GpuUse::kLeave;
    const bool own = segment.owner == id && (leaves || segment.use == GpuUse::kRun);
    if (leaves) {
      const uint64_t stalled = std::min(ns, static_cast<uint64_t>(host_delay_.count()));
      vf.times[Index(Felt::kStalled)] += stalled;
      ns -= stalled;
    }
    if (!own) {
      vf.times[Index(WaitDuring(segment.use, vf.had_work))] += ns;
      continue;
    }
    uint64_t without = 0;
    for (const auto& [begin, end] : gaps_)
      without += Overlap(std::max(begin, segment.from), std::min(end, segment.to), from, to);
    without = std::min(without, ns);
    vf.thinking_ns += without;
    vf.times[Index(Felt::kGpu)] += ns - without;
  }
}

bool FeltAccount::HadGpu(VfId vf) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) { return segment.owner == vf; });
}

void FeltAccount::ObserveOne(const VfView& view, const Activity& activity, TimePoint now) {
  Vf& vf = At(view.vf);
  const TimePoint from = boundary_;
  const TimePoint since = std::clamp(activity.since, from, now);
  if (!activity.program) {
    vf.active = vf.had_work = false;
    vf.thinking_ns = 0;
    return;
  }
  if (view.paused) {
    if (vf.active) vf.times[Index(Felt::kHeld)] += static_cast<uint64_t>((now - from).count());
    return;
  }
  // With work until `until`, or from then on.
  if (vf.had_work && view.runnable && !HadGpu(view.vf)) {
    for (size_t i = 0; i < kFeltKinds; ++i) vf.times[i] += all_waiting_[i];
  } else if (vf.had_work) {
    const TimePoint until = view.runnable ? now : since;
    AddWork(vf, view.vf, from, until);
    vf.thinking_ns += static_cast<uint64_t>((now - until).count());
  } else if (vf.active) {
    const TimePoint until = view.runnable ? since : now;
    vf.thinking_ns += static_cast<uint64_t>((until - from).count());
    AddWork(vf, view.vf, until, now);
  } else if (view.runnable) {
    AddWork(vf, view.vf, since, now);
  }
  vf.active |= view.runnable;
  vf.had_work = view.runnable;
  if (view.runnable) vf.times[Index(Felt::kThinking)] += std::exchange(vf.thinking_ns, 0);
}

void FeltAccount::Observe(std::span<const VfView> vfs, std::span<const Activity> activities, TimePoint now) {
  now = std::max(now, boundary_);
  if (!segments_.empty()) segments_.back().to = std::max(now, segments_.back().from);
  Vf waiting{.had_work = true};
  AddWork(waiting, kNoVf, boundary_, now);
  all_waiting_ = waiting.times;
  for (size_t i = 0; i < vfs.size(); ++i) ObserveOne(vfs[i], activities.empty() ? Activity{} : activities[i], now);
  if (!segments_.empty()) {
    segments_.front() = {now, TimePoint::max(), segments_.back().use, segments_.back().owner};
    segments_.resize(1);
  }
  gaps_.clear();
  host_delay_ = Ns{0};
  boundary_ = now;
}

void FeltAccount::Forget(VfId vf) {
  if (Raw(vf) < vfs_.size()) vfs_[Raw(vf)] = Vf{};
}

}  // namespace vgpud
