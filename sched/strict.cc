// SPDX-License-Identifier: Apache-2.0
#include "sched/strict.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sched/shares.h"

namespace vgpud {
namespace {

PolicyOptions OnlyBaseSlice(Ns base_slice) {
  PolicyOptions options;
  options.base_slice = base_slice;
  return options;
}

}  // namespace

StrictPolicy::StrictPolicy(Ns base_slice) : StrictPolicy(OnlyBaseSlice(base_slice)) {}

StrictPolicy::StrictPolicy(const PolicyOptions& options) : options_(options) { rotation_.SetOptions(options); }

void StrictPolicy::SetOptions(const PolicyOptions& options, TimePoint now) {
  options_ = options;
  rotation_.SetOptions(options);
  for (const VfView& vf : shown()) Changed(vf, now);
}

void StrictPolicy::Changed(const VfView& vf, TimePoint) {
  rotation_.Set(vf, options_.idle == WhenIdle::kHold ? !vf.paused : vf.runnable);
}

std::optional<Policy::Pick> StrictPolicy::Choose(TimePoint) { return rotation_.Next(); }
void StrictPolicy::Ended(const Pick& pick, Ns used, TimePoint) { rotation_.Ended(pick, used); }
void StrictPolicy::Clear(VfId vf) { rotation_.Clear(vf); }
void StrictPolicy::Owe(VfId vf, Ns debt) { rotation_.Owe(vf, debt); }
Ns StrictPolicy::Debt(VfId vf) const { return rotation_.Debt(vf); }
Ns StrictPolicy::FullSlice(const VfView& vf) const { return rotation_.FullSlice(vf); }

uint64_t StrictPolicy::Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const {
  return TreeShares(vfs, options_, rotation_.BaseSlice(), out);
}

// Before its turn come: the one that is running, of anybody; those of its class, once each, and once more if they may
// wake up; and of each lower class a turn, and its floor of all this time.
std::optional<Ns> StrictPolicy::WakeBound(std::span<const VfView> vfs, VfId id) const {
  const auto vf = std::find_if(vfs.begin(), vfs.end(), [&](const VfView& v) { return v.vf == id; });
  if (vf == vfs.end()) return std::nullopt;
  const bool wakes_first = vf->wake_first && YieldsWhenIdle();
  Ns running{0}, sum{0};
  std::array<Ns, kPriorities> lower{};
  for (const VfView& other : vfs) {
    if (other.vf == id || other.paused) continue;
    if (other.priority > vf->priority || (other.priority == vf->priority && other.group != vf->group)) return {};
    const Ns slice = FullSlice(other);
    running = std::max(running, slice);
    if (other.priority < vf->priority)
      lower[other.priority] = std::max(lower[other.priority], slice);
    else
      sum += slice * ((wakes_first ? 0 : 1) + (other.wake_first && YieldsWhenIdle() ? 1 : 0));
  }
  const auto classes = std::count_if(lower.begin(), lower.end(), [](Ns slice) { return slice > Ns{0}; });
  sum = std::accumulate(lower.begin(), lower.end(), sum) + (wakes_first || classes > 0 ? running : Ns{0});
  return sum * 100 / (100 - options_.floor_percent * classes);
}

}  // namespace vgpud
