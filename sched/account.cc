#include "sched/account.h"

#include <algorithm>

namespace vgpud {
namespace {

__extension__ using Wide = unsigned __int128;

uint64_t Elapsed(const std::optional<TimePoint>& from, TimePoint to) {
  if (!from || to <= *from) return 0;
  return static_cast<uint64_t>((to - *from).count());
}

}  // namespace

VfAccount& Account::At(VfId vf) {
  if (Raw(vf) >= vfs_.size()) vfs_.resize(Raw(vf) + 1);
  return vfs_[Raw(vf)];
}

VfAccount Account::Of(VfId vf) const { return Raw(vf) < vfs_.size() ? vfs_[Raw(vf)] : VfAccount{}; }

void Account::CloseInterval(TimePoint now) {
  const uint64_t elapsed = Elapsed(interval_start_, now);
  interval_start_ = interval_start_ ? std::max(*interval_start_, now) : now;
  if (elapsed == 0) return;
  for (const Entitled& e : runnable_) {
    VfAccount& account = At(e.vf);
    if (total_share_ > 0) account.entitled_ns += static_cast<uint64_t>(Wide{elapsed} * e.share / total_share_);
    if (e.runnable) account.runnable_ns += elapsed;
  }
}

void Account::Observe(std::span<const VfView> vfs, const Policy& policy, TimePoint now) {
  Advance(now);
  runnable_.clear();
  shares_.resize(vfs.size());
  total_share_ = policy.Entitled(vfs, shares_);
  for (size_t i = 0; i < vfs.size(); ++i) {
    if (!vfs[i].runnable && shares_[i] == 0) continue;
    runnable_.push_back({vfs[i].vf, shares_[i], vfs[i].runnable});
  }
}

void Account::Use(GpuUse use, VfId vf, TimePoint now) {
  Advance(now);
  use_ = use;
  user_ = vf;
}

void Account::Advance(TimePoint now) {
  CloseInterval(now);
  const uint64_t elapsed = Elapsed(use_start_, now);
  use_start_ = use_start_ ? std::max(*use_start_, now) : now;
  if (elapsed == 0) return;
  use_ns_[static_cast<size_t>(use_)] += elapsed;
  if (use_ == GpuUse::kRun) At(user_).received_ns += elapsed;
  for (const Entitled& e : runnable_)
    if (e.runnable && (use_ != GpuUse::kRun || e.vf != user_)) At(e.vf).waited_ns += elapsed;
}

void Account::Ended(const Turn& turn) {
  VfAccount& account = At(turn.vf);
  const auto overrun = static_cast<uint64_t>(turn.overrun.count());
  ++account.slices;
  account.overrun_ns += overrun;
  account.worst_overrun_ns = std::max(account.worst_overrun_ns, overrun);
  account.forced_preemptions += turn.forced;
  account.hangs += turn.hung;
  account.host_stalls += turn.stalled;
}

void Account::Forget(VfId vf) {
  if (Raw(vf) < vfs_.size()) vfs_[Raw(vf)] = VfAccount{};
  std::erase_if(runnable_, [&](const Entitled& e) {
    if (e.vf != vf) return false;
    total_share_ -= e.share;
    return true;
  });
}

}  // namespace vgpud
