// SPDX-License-Identifier: Apache-2.0
#include "sched/account/account.h"

#include <algorithm>
#include <utility>

namespace vgpud {
namespace {

// a * b / c without an overflow on the way.
uint64_t PartOf(uint64_t a, uint64_t b, uint64_t c) {
  __extension__ using Wide = unsigned __int128;
  uint64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product / c;
  return static_cast<uint64_t>(Wide{a} * b / c);
}

uint64_t Elapsed(const std::optional<TimePoint>& from, TimePoint to) {
  return from ? static_cast<uint64_t>(std::max(Ns{0}, to - *from).count()) : 0;
}

constexpr std::pair<Felt, uint64_t VfAccount::*> kParts[] = {
    {Felt::kGpu, &VfAccount::active_gpu_ns},         {Felt::kThinking, &VfAccount::active_thinking_ns},
    {Felt::kOthers, &VfAccount::active_others_ns},   {Felt::kSwitching, &VfAccount::active_switching_ns},
    {Felt::kStalled, &VfAccount::active_stalled_ns}, {Felt::kHeld, &VfAccount::active_held_ns},
};
static_assert(std::size(kParts) == kFeltKinds);

}  // namespace

Account::Vf& Account::At(VfId vf) {
  if (Raw(vf) >= vfs_.size()) {
    vfs_.resize(Raw(vf) + 1);
    times_.resize(Raw(vf) + 1);
  }
  return vfs_[Raw(vf)];
}

VfAccount Account::Of(VfId vf) const {
  VfAccount account = Raw(vf) < vfs_.size() ? vfs_[Raw(vf)].account : VfAccount{};
  const FeltTimes felt = felt_.Of(vf);
  for (const auto& [kind, part] : kParts) {
    account.*part = felt[static_cast<size_t>(kind)];
    account.active_ns += account.*part;
  }
  return account;
}

const VfTimes& Account::TimesOf(VfId vf) const {
  static const VfTimes kNone;
  return Raw(vf) < vfs_.size() ? times_[Raw(vf)] : kNone;
}

// Its work is done: what it had not received yet it does not want, and what it had too much is not held against it.
void Account::DropClaim(Vf& vf) {
  vf.account.unclaimed_ns += static_cast<uint64_t>(std::max<int64_t>(0, vf.claim_ns));
  vf.claim_ns = 0;
}

void Account::Observe(std::span<const VfView> vfs, const Policy& policy, TimePoint now,
                      std::span<const Activity> activities) {
  Advance(now);
  const TimePoint before = std::min(felt_.boundary(), now);
  felt_.Observe(vfs, activities, now);
  if (!SharesHold(vfs, policy)) ObserveShares(vfs, policy);
  ObserveWaits(vfs, activities, before, now);
}

bool Account::SharesHold(std::span<const VfView> vfs, const Policy& policy) const {
  return shares_known_ && shares_base_ == policy.BaseSlice() && shares_with_ == policy.options() &&
         std::equal(vfs.begin(), vfs.end(), shares_of_.begin(), shares_of_.end());
}

void Account::ObserveShares(std::span<const VfView> vfs, const Policy& policy) {
  shares_known_ = true;
  shares_base_ = policy.BaseSlice();
  shares_with_ = policy.options();
  shares_of_.assign(vfs.begin(), vfs.end());
  runnable_.clear();
  shares_.resize(vfs.size());
  total_share_ = policy.Entitled(vfs, shares_);
  for (size_t i = 0; i < vfs.size(); ++i) {
    if (!vfs[i].runnable && shares_[i] == 0) continue;
    runnable_.push_back({vfs[i].vf, shares_[i], vfs[i].runnable});
  }
  ObserveOwnParts(vfs, policy);
}

void Account::ObserveOwnParts(std::span<const VfView> vfs, const Policy& policy) {
  bool somebody_idle = false;
  for (const VfView& vf : vfs) {
    At(vf.vf).own_part = 1;
    somebody_idle |= !vf.runnable && !vf.paused;
  }
  if (!somebody_idle || total_share_ == 0) return;
  all_busy_.assign(vfs.begin(), vfs.end());
  for (VfView& vf : all_busy_) vf.runnable = !vf.paused;
  busy_shares_.resize(vfs.size());
  const uint64_t all = policy.Entitled(all_busy_, busy_shares_);
  if (all == 0) return;
  for (size_t i = 0; i < vfs.size(); ++i) {
    if (shares_[i] == 0) continue;
    const double now = static_cast<double>(shares_[i]) / static_cast<double>(total_share_);
    const double own = static_cast<double>(busy_shares_[i]) / static_cast<double>(all);
    At(vfs[i].vf).own_part = std::min(1.0, own / now);
  }
}

// Who has got work has waited since then, if that is known and was after the boundary `before`.
void Account::ObserveWaits(std::span<const VfView> vfs, std::span<const Activity> activities, TimePoint before,
                           TimePoint now) {
  for (size_t i = 0; i < vfs.size(); ++i) {
    const VfView& view = vfs[i];
    Vf& vf = At(view.vf);
    if (!view.runnable) vf.waiting_since.reset();
    if (!view.runnable && shares_[i] == 0) DropClaim(vf);
    if (view.runnable && !vf.waiting_since) {
      vf.woke = !vf.had_work;
      const bool told = vf.woke && !activities.empty() && activities[i].program;
      vf.waiting_since = told ? std::clamp(activities[i].since, before, now) : now;
    }
    vf.had_work = view.runnable;
  }
}

void Account::Use(GpuUse use, VfId vf, TimePoint now) {
  Advance(now);
  felt_.Use(use, vf, now);
  use_ = use;
  user_ = vf;
  if (use != GpuUse::kRun) return;
  Vf& user = At(vf);
  if (!user.waiting_since) return;
  const uint64_t waited = Elapsed(user.waiting_since, now);
  user.waiting_since.reset();
  times_[Raw(vf)].turn_wait.Add(waited);
  if (user.woke) times_[Raw(vf)].wake_wait.Add(waited);
}

void Account::Advance(TimePoint now) {
  const uint64_t elapsed = Elapsed(use_start_, now);
  use_start_ = use_start_ ? std::max(*use_start_, now) : now;
  if (elapsed == 0) return;
  use_ns_[static_cast<size_t>(use_)] += elapsed;
  if (use_ == GpuUse::kRun) Receive(elapsed);
  const bool has_it = use_ == GpuUse::kRun || use_ == GpuUse::kLeave;
  for (const Entitled& e : runnable_) {
    Vf& vf = vfs_[Raw(e.vf)];
    if (total_share_ > 0) {
      const uint64_t part = PartOf(elapsed, e.share, total_share_);
      vf.account.entitled_ns += part;
      vf.claim_ns += static_cast<int64_t>(part);
    }
    if (!e.runnable) continue;
    vf.account.runnable_ns += elapsed;
    if (!has_it || e.vf != user_) vf.account.waited_ns += elapsed;
  }
}

void Account::Receive(uint64_t ns) {
  Vf& user = At(user_);
  user.account.received_ns += ns;
  user.claim_ns -= static_cast<int64_t>(ns);
  user.account.borrowed_ns += static_cast<uint64_t>(static_cast<double>(ns) * (1 - user.own_part));
}

void Account::Ended(const Turn& turn) {
  Vf& vf = At(turn.vf);
  const uint64_t leaving = std::exchange(use_ns_[static_cast<size_t>(GpuUse::kLeave)], 0);
  const uint64_t stall = std::min(leaving, static_cast<uint64_t>(turn.host_delay.count()));
  user_ = turn.vf;
  felt_.HostDelay(turn.host_delay);
  Receive(leaving - stall);
  use_ns_[static_cast<size_t>(GpuUse::kRun)] += leaving - stall;
  use_ns_[static_cast<size_t>(GpuUse::kStall)] += stall;
  vf.account.host_delay_ns += stall;
  VfAccount& account = vf.account;
  const auto overrun = static_cast<uint64_t>(turn.overrun.count());
  ++account.slices;
  account.overrun_ns += overrun;
  account.worst_overrun_ns = std::max(account.worst_overrun_ns, overrun);
  account.forced_preemptions += turn.forced;
  account.hangs += turn.hung;
  account.host_stalls += turn.stalled;
  if (turn.used_up) times_[Raw(turn.vf)].overrun.Add(overrun);
  vf.had_work &= turn.forced;
  if (!turn.forced && !turn.used_up) DropClaim(vf);
}

void Account::Forget(VfId vf) {
  shares_known_ = false;
  felt_.Forget(vf);
  if (Raw(vf) < vfs_.size()) {
    vfs_[Raw(vf)] = Vf{};
    times_[Raw(vf)] = VfTimes{};
  }
  std::erase_if(runnable_, [&](const Entitled& e) {
    if (e.vf != vf) return false;
    total_share_ -= e.share;
    return true;
  });
}

}  // namespace vgpud
