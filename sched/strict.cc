#include "sched/strict.h"

#include <algorithm>
#include <limits>

namespace vgpud {

StrictPolicy::StrictPolicy(Ns base_slice) : base_slice_(base_slice) {}

Ns& StrictPolicy::DebtOf(VfId vf) {
  if (Raw(vf) >= debt_.size()) debt_.resize(Raw(vf) + 1);
  return debt_[Raw(vf)];
}

Ns StrictPolicy::Debt(VfId vf) const { return Raw(vf) < debt_.size() ? debt_[Raw(vf)] : Ns{0}; }

void StrictPolicy::Forget(VfId vf) {
  if (Raw(vf) < debt_.size()) debt_[Raw(vf)] = Ns{0};
}

Ns StrictPolicy::FullSlice(const VfView& vf) const {
  if (vf.slice > Ns{0}) return vf.slice;
  return std::max(Ns{1}, base_slice_ * vf.weight / kDefaultWeight);
}

std::optional<Policy::Pick> StrictPolicy::Next(std::span<const VfView> vfs, TimePoint) {
  const auto first =
      std::partition_point(vfs.begin(), vfs.end(), [this](const VfView& v) { return Raw(v.vf) < after_last_; });
  const auto start = static_cast<size_t>(first - vfs.begin());
  for (;;) {
    bool somebody_runnable = false;
    if (const auto pick = OneTurnOfTheWheel(vfs, start, &somebody_runnable)) return pick;
    if (!somebody_runnable) return std::nullopt;
    RepayWholeRounds(vfs);
  }
}

std::optional<Policy::Pick> StrictPolicy::OneTurnOfTheWheel(std::span<const VfView> vfs, size_t start,
                                                            bool* somebody_runnable) {
  for (size_t i = 0; i < vfs.size(); ++i) {
    const bool wrapped = start + i >= vfs.size();
    const VfView& v = vfs[wrapped ? start + i - vfs.size() : start + i];
    if (!v.runnable) continue;
    *somebody_runnable = true;
    const Ns full = FullSlice(v);
    Ns& debt = DebtOf(v.vf);
    if (debt >= full) {
      debt -= full;
      continue;
    }
    const Pick pick{v.vf, full - debt};
    debt = Ns{0};
    if (wrapped) ++round_;
    after_last_ = uint64_t{Raw(v.vf)} + 1;
    return pick;
  }
  return std::nullopt;
}

// Everybody runnable owes at least one slice: the rounds in which all of them would be passed over are taken at once.
void StrictPolicy::RepayWholeRounds(std::span<const VfView> vfs) {
  auto rounds = std::numeric_limits<int64_t>::max();
  for (const VfView& v : vfs)
    if (v.runnable) rounds = std::min<int64_t>(rounds, Debt(v.vf) / FullSlice(v));
  for (const VfView& v : vfs)
    if (v.runnable) DebtOf(v.vf) -= rounds * FullSlice(v);
  round_ += static_cast<uint64_t>(rounds) + 1;
}

void StrictPolicy::Ended(const Pick& pick, Ns used, TimePoint) {
  if (used > pick.slice) DebtOf(pick.vf) += used - pick.slice;
}

}  // namespace vgpud
