// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/meter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "sched/fairness.h"

namespace vgpud::tools {
namespace {

using std::chrono::seconds;

double AsDouble(Ns t) { return static_cast<double>(t.count()); }

}  // namespace

Meter::Meter(const SimWorld& world, const Policy& policy, bool judge_lag)
    : world_(world),
      policy_(policy),
      judge_lag_(judge_lag),
      figures_(world.size()),
      service_(world.size()),
      received_(world.size()),
      entitled_(world.size()),
      second_{seconds{1}, &VfFigures::share_error_1s, std::vector<VfAccount>(world.size())},
      minute_{seconds{60}, &VfFigures::share_error_60s, std::vector<VfAccount>(world.size())} {
  for (VfFigures& f : figures_) f.worst_lag = -1;
}

// Bound of docs/world-switch.md: ahead, a VF just had its slice and overran it; behind, all others just did.
void Meter::NewSpan() {
  stale_ = false;
  ++span_;
  all_base_ = all_;
  const auto views = world_.views();
  shares_.assign(views.size(), 0);
  policy_.Entitled(views, shares_);
  double sum = 0;
  double slices = 0;
  size_t count = 0;
  for (size_t i = 0; i < views.size(); ++i) {
    sum += static_cast<double>(shares_[i]);
    if (shares_[i] == 0) continue;
    ++count;
    slices += AsDouble(policy_.FullSlice(views[i]));
  }
  for (size_t i = 0; i < views.size(); ++i) {
    Service& s = service_[Raw(views[i].vf)];
    s.span = span_;
    s.base = s.total;
    s.share = sum > 0 ? static_cast<double>(shares_[i]) / sum : 0;
    const double full = AsDouble(policy_.FullSlice(views[i]));
    s.bound = std::max((1 - s.share) * full, s.share * (slices - full));
    s.others = std::max(1 - s.share, s.share * static_cast<double>(count - 1));
  }
}

void Meter::TurnBegins(VfId vf) {
  if (!judge_lag_) return;
  if (stale_) NewSpan();
  Judge(vf);
}

void Meter::TurnEnds(const SliceRecord& turn, Ns overrun) {
  worst_overrun_ = std::max(worst_overrun_, AsDouble(overrun));
  service_[Raw(turn.vf)].total += turn.end - turn.start;
  all_ += turn.end - turn.start;
  if (judge_lag_) Judge(turn.vf);
}

// From a start common to all the lag keeps within the bound; over any other span within twice that.
void Meter::Judge(VfId vf) {
  const Service& s = service_[Raw(vf)];
  if (stale_ || s.span != span_ || s.share == 0) return;
  const double lag = std::abs(AsDouble(s.total - s.base) - s.share * AsDouble(all_ - all_base_));
  const double bound = (s.bound + s.others * worst_overrun_) * (span_ == 1 ? 1 : 2);
  double& worst = figures_[Raw(vf)].worst_lag;
  worst = std::max(worst, bound > 0 ? lag / bound : 0);
}

void Meter::Second(const Account& account, TimePoint now, uint64_t index) {
  Close(second_, account, now, true);
  if (index % 60 == 0) Close(minute_, account, now, false);
}

void Meter::Close(Window& window, const Account& account, TimePoint now, bool for_jain) {
  std::vector<SharePart> busy;
  for (const VfView& view : world_.views()) {
    const uint32_t vf = Raw(view.vf);
    const VfAccount after = account.Of(view.vf);
    const VfAccount before = std::exchange(window.before[vf], after);
    if (!view.runnable || world_.unchanged_since(view.vf) > now - window.length) continue;
    busy.push_back({vf, static_cast<double>(after.received_ns - before.received_ns),
                    static_cast<double>(after.entitled_ns - before.entitled_ns)});
  }
  const auto parts = PartsOfSum(std::move(busy));
  if (!parts) return;
  for (const SharePart& part : *parts) {
    double& error = figures_[part.key].*window.error;
    error = std::max(error, std::abs(part.error()));
    if (!for_jain) continue;
    received_[part.key] += part.received;
    entitled_[part.key] += part.entitled;
  }
}

double Meter::Jain() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < entitled_.size(); ++i)
    if (entitled_[i] > 0) ratios.push_back(received_[i] / entitled_[i]);
  return JainIndex(ratios).value_or(-1);
}

}  // namespace vgpud::tools
