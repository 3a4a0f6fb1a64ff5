// SPDX-License-Identifier: Apache-2.0
#include "sched/strict.h"

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

}  // namespace vgpud
