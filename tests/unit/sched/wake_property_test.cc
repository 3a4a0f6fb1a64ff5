// SPDX-License-Identifier: Apache-2.0
// VFs that go first when they wake up, over random VFs, weights, overruns and arrivals: what it may cost the others,
// and how long a wait after sleep may be.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/sched/random.h"
#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

struct Bed {
  SimWorlds worlds{kStart};
  StrictPolicy policy{2ms};
  Switcher switcher{worlds, policy, {.preempt_timeout = 1s}};
  Ns worst_overrun{0};

  SimWorlds::SimVf& Add(Ns work, int overrun_limit_us) {
    auto& vf = worlds.Add(static_cast<uint32_t>(Any(5, 500)), work);
    for (int n = overrun_limit_us == 0 ? 0 : Any(0, 4); n > 0; --n) {
      vf.overruns.push_back(Us(Any(0, overrun_limit_us)));
      worst_overrun = std::max(worst_overrun, vf.overruns.back());
    }
    return vf;
  }
  void AddBursts(int count, int longest_gap_us) {
    auto& vf = Add(0ns, 1'000);
    vf.view.wake_first = true;
    Ns at{0};
    for (int i = 0; i < count; ++i) {
      at += Us(Any(0, longest_gap_us));
      vf.arrivals.push_back({at, Us(Any(1, 4'000))});
    }
  }
  // A program that always has more to do, and falls asleep for a moment after each kernel to wake up first.
  void AddBlinker() {
    auto& vf = Add(0ns, 1'000);
    vf.view.wake_first = true;
    vf.work = vf.kernel = policy.FullSlice(vf.view) * Any(1, 5) / 4 + 1us;
    for (int n = Any(1, 4); n > 0; --n) vf.thinks.push_back(Us(Any(1, 300)));
  }
  Ns Full(size_t i) { return policy.FullSlice(worlds.vf(i).view); }
  Ns Round() {
    Ns sum{0};
    for (size_t i = 0; i < worlds.size(); ++i) sum += Full(i);
    return sum;
  }
  double Served() {
    double all = 0;
    for (size_t i = 0; i < worlds.size(); ++i) all += D(worlds.vf(i).served);
    return all;
  }
};

// How far `vf` may get ahead of, or behind, its share in any interval, when those with wake_first may have a slice
// early.
double Bound(Bed& bed, size_t vf) {
  const double overrun = D(bed.worst_overrun), full = D(bed.Full(vf)), round = D(bed.Round());
  double early = 0;
  for (size_t i = 0; i < bed.worlds.size(); ++i)
    if (bed.worlds.vf(i).view.wake_first) early += D(bed.Full(i));
  const double others = round - full + static_cast<double>(bed.worlds.size() - 1) * overrun;
  return (1 - full / round) * (full + 2 * overrun) + full / round * (others + early) + 1e3;
}

RC_GTEST_PROP(WakeProperty, I17_WhoGoesFirstCostsWhoIsBusyASliceAtMost, ()) {
  Bed bed;
  const size_t busy = static_cast<size_t>(Any(1, 5));
  for (size_t i = 0; i < busy; ++i) bed.Add(kEndless, 1'000);
  for (int i = Any(1, 4); i > 0; --i) bed.AddBursts(80, *rc::gen::element(300, 3'000, 20'000));
  for (int i = Any(0, 3); i > 0; --i) bed.AddBlinker();
  std::vector<double> ahead(busy);
  for (int step = 0; step < 300; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 5'000)));
    for (size_t i = 0; i < busy; ++i) {
      const double lag = D(bed.worlds.vf(i).served) - D(bed.Full(i)) / D(bed.Round()) * bed.Served();
      ahead[i] = std::max(ahead[i], lag);
      RC_ASSERT(ahead[i] - lag <= Bound(bed, i));
    }
  }
}

RC_GTEST_PROP(WakeProperty, I17_WhoGoesFirstGainsASliceAtMost, ()) {
  Bed bed;
  const size_t busy = static_cast<size_t>(Any(1, 5));
  for (size_t i = 0; i < busy; ++i) bed.Add(kEndless, 1'000);
  if (Any(0, 2) == 0)
    bed.AddBursts(80, *rc::gen::element(300, 3'000, 20'000));
  else
    bed.AddBlinker();
  double behind = 0;
  for (int step = 0; step < 300; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 5'000)));
    const double lag = D(bed.worlds.vf(busy).served) - D(bed.Full(busy)) / D(bed.Round()) * bed.Served();
    behind = std::min(behind, lag);
    RC_ASSERT(lag - behind <= Bound(bed, busy) + D(bed.Full(busy)));
  }
}

// A VF that sleeps for some rounds between short bursts never waits longer than Policy::WakeBound says.
RC_GTEST_PROP(WakeProperty, I18_WaitsAfterSleepStayWithinTheirBound, ()) {
  Bed bed;
  for (int i = Any(1, 7); i > 0; --i) bed.Add(kEndless, 0);
  for (int i = Any(0, 3); i > 0; --i) {
    bed.AddBursts(200, 5'000);
    bed.worlds.vf(bed.worlds.size() - 1).overruns.clear();
  }
  auto& sleeper = bed.worlds.Add(100, 0ns);
  sleeper.view.wake_first = Any(0, 2) == 0;
  const Ns gap = 2 * bed.Round();
  Ns at{0};
  for (int i = 0; i < 20; ++i) {
    at += gap + Us(Any(0, 20'000));
    sleeper.arrivals.push_back({at, Us(Any(1, 1'000))});
  }
  const auto bound = bed.policy.WakeBound(bed.worlds.TurnBoundary(kStart), sleeper.view.vf);
  RC_ASSERT(bound.has_value());
  bed.worlds.Drive(bed.switcher, at + gap);
  RC_ASSERT(sleeper.work == 0ns);
  RC_ASSERT(sleeper.worst_wait <= *bound);
}

}  // namespace
}  // namespace vgpud
