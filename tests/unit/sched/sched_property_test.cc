// SPDX-License-Identifier: Apache-2.0
// The invariants of a fair forced switch, over random VFs, weights, overruns and arrivals.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/sched/random.h"
#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

struct Bed {
  SimWorlds worlds;
  StrictPolicy policy;
  Switcher switcher;
  Ns worst_overrun{0};
  explicit Bed(TimePoint start = kStart, uint32_t anticipate_percent = 0)
      : worlds(start),
        policy(PolicyOptions{.anticipate_percent = anticipate_percent}),
        switcher(worlds, policy, {.preempt_timeout = 1s}) {}

  std::vector<Ns> AnyOverruns(int limit_us) {
    std::vector<Ns> overruns;
    for (int n = Any(0, 5); n > 0; --n) {
      overruns.push_back(Us(Any(0, limit_us)));
      worst_overrun = std::max(worst_overrun, overruns.back());
    }
    return overruns;
  }
  void AddBusy(int count, int overrun_limit_us) {
    for (int i = 0; i < count; ++i) {
      auto& vf = worlds.Add(static_cast<uint32_t>(*rc::gen::inRange(1, 1000)), kEndless,
                            Any(0, 4) == 0 ? Us(Any(100, 20'000)) : Ns{0});
      vf.overruns = AnyOverruns(overrun_limit_us);
    }
  }
  // Work that comes and goes.
  void AddBursty(SimWorlds::SimVf& vf, int bursts) {
    Ns at{0};
    for (int i = 0; i < bursts; ++i) {
      at += Us(Any(0, 20'000));
      vf.arrivals.push_back({at, Us(Any(1, 8'000))});
    }
  }
  double FullSlice(size_t i) { return D(policy.FullSlice(worlds.vf(i).view)); }
  double LongestSlice() {
    double longest = 0;
    for (size_t i = 0; i < worlds.size(); ++i) longest = std::max(longest, FullSlice(i));
    return longest;
  }
  double Share(size_t i) {
    double all = 0;
    for (size_t k = 0; k < worlds.size(); ++k) all += FullSlice(k);
    return FullSlice(i) / all;
  }
  double Served(size_t i) { return D(worlds.vf(i).served); }
  double ServedByAll() {
    double all = 0;
    for (size_t i = 0; i < worlds.size(); ++i) all += Served(i);
    return all;
  }
  // Ahead: it just had its slice and overran it. Behind: everybody else just did. Equal slices: (1 - 1/N)(Q + P).
  double LagBound(size_t i) {
    const auto overrun = D(worst_overrun);
    double others = 0;
    for (size_t k = 0; k < worlds.size(); ++k)
      if (k != i) others += FullSlice(k) + overrun;
    return std::max((1 - Share(i)) * (FullSlice(i) + overrun), Share(i) * others) + 1e3;
  }
};

RC_GTEST_PROP(SchedProperty, I1_EveryNanosecondIsChargedOnce, ()) {
  Bed bed;
  bed.worlds.switch_cost = Us(Any(0, 100));
  bed.AddBusy(Any(0, 4), 1'000);
  for (int i = Any(0, 4); i > 0; --i) bed.AddBursty(bed.worlds.Add(100, 0ns), 5);
  bed.worlds.Drive(bed.switcher, 1ms);
  const auto& first = bed.switcher.AccountAt(bed.worlds.now());
  const uint64_t before = AllTime(first);
  bed.worlds.Drive(bed.switcher, 200ms);
  const auto& account = bed.switcher.AccountAt(bed.worlds.now());
  RC_ASSERT(AllTime(account) - before == 200'000'000u);
  uint64_t received = 0;
  for (size_t i = 0; i < bed.worlds.size(); ++i) {
    const VfAccount vf = account.Of(bed.worlds.vf(i).view.vf);
    received += vf.received_ns;
    const auto served = static_cast<uint64_t>(bed.worlds.vf(i).served.count());
    RC_ASSERT(vf.received_ns <= served && served - vf.received_ns <= account.leave_ns());
  }
  RC_ASSERT(received == account.run_ns());
}

RC_GTEST_PROP(SchedProperty, I1b_HostDelaysAreChargedToNobodyUpToTheirLimit, ()) {
  Bed bed;
  bed.AddBusy(Any(2, 6), 20'000);
  bed.worlds.host_delay = Us(Any(0, 20'000));
  bed.worlds.Drive(bed.switcher, 500ms);
  const auto& account = bed.switcher.AccountAt(bed.worlds.now());
  RC_ASSERT(AllTime(account) == 500'000'000u);
  uint64_t delays = 0;
  for (size_t i = 0; i < bed.worlds.size(); ++i) {
    const VfAccount vf = account.Of(bed.worlds.vf(i).view.vf);
    delays += vf.host_delay_ns;
    const auto served = static_cast<uint64_t>(bed.worlds.vf(i).served.count());
    RC_ASSERT(vf.received_ns + vf.host_delay_ns <= served);
    RC_ASSERT(served - vf.received_ns - vf.host_delay_ns <= account.leave_ns());
    // What it used of its slices is at most what it received.
    RC_ASSERT(vf.host_delay_ns <= 40'000'000u + vf.received_ns / 4 + 1'000'000u * vf.slices / 100);
  }
  RC_ASSERT(delays == account.stall_ns());
}

RC_GTEST_PROP(SchedProperty, I2_I9_BusyVfsStayWithinTheLagBoundForEver, ()) {
  Bed bed;
  bed.AddBusy(Any(2, 8), *rc::gen::element(1, 100, 3'000, 30'000));
  for (int step = 0; step < 60; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(100, 30'000)));
    for (size_t i = 0; i < bed.worlds.size(); ++i)
      RC_ASSERT(std::abs(bed.Served(i) - bed.Share(i) * bed.ServedByAll()) <= bed.LagBound(i));
  }
}

RC_GTEST_PROP(SchedProperty, EntitlementIsTheShareOfTheTimeInWhichAllAreRunnable, ()) {
  Bed bed;
  bed.AddBusy(Any(1, 8), 1'000);
  bed.worlds.Drive(bed.switcher, 300ms);
  for (size_t i = 0; i < bed.worlds.size(); ++i) {
    const Account& account = bed.switcher.AccountAt(bed.worlds.now());
    const VfAccount vf = account.Of(bed.worlds.vf(i).view.vf);
    RC_ASSERT(std::abs(static_cast<double>(vf.entitled_ns) - bed.Share(i) * 3e8) < 1e4);
    RC_ASSERT(vf.runnable_ns == 300'000'000u);
    const uint64_t known = vf.received_ns + vf.waited_ns;
    RC_ASSERT(known == vf.runnable_ns || known + account.leave_ns() == vf.runnable_ns);
  }
}

RC_GTEST_PROP(SchedProperty, I3_NobodyRunsWhileItOwesASlice, ()) {
  StrictPolicy policy{2ms};
  std::vector<VfView> vfs;
  for (int i = 0, n = Any(1, 10); i < n; ++i)
    vfs.push_back({VfId{static_cast<uint32_t>(i)}, static_cast<uint32_t>(Any(1, 500)), Ns{0}, true});
  std::vector<Ns> owed(vfs.size());
  for (int step = 0; step < 300; ++step) {
    const auto pick = policy.Next(vfs, kStart);
    RC_ASSERT(pick.has_value());
    const Ns full = policy.FullSlice(vfs[Raw(pick->vf)]);
    RC_ASSERT(pick->slice > 0ns);
    RC_ASSERT(pick->slice <= full);
    RC_ASSERT(policy.Debt(pick->vf) == 0ns);
    const Ns used = pick->slice + Us(Any(0, 20'000));
    policy.Ended(*pick, used, kStart);
    RC_ASSERT(policy.Debt(pick->vf) == used - pick->slice);
  }
}

// I4 (never idle while somebody is runnable) and I14 (one world at a time) are checked by SimWorlds in every step.
RC_GTEST_PROP(SchedProperty, I4_I14_WorkConservingAndOneWorldAtATime, ()) {
  Bed bed;
  bed.worlds.switch_cost = Us(Any(0, 50));
  for (int i = Any(1, 8); i > 0; --i) {
    auto& vf = bed.worlds.Add(static_cast<uint32_t>(Any(1, 1000)), 0ns);
    bed.AddBursty(vf, Any(0, 12));
    vf.overruns = bed.AnyOverruns(2'000);
  }
  bed.worlds.Drive(bed.switcher, 2s);
  for (size_t i = 1; i < bed.worlds.turns().size(); ++i)
    RC_ASSERT(bed.worlds.turns()[i].start >= bed.worlds.turns()[i - 1].end);
  for (size_t i = 0; i < bed.worlds.size(); ++i) RC_ASSERT(bed.worlds.vf(i).work == 0ns);
}

RC_GTEST_PROP(SchedProperty, I6_NobodyWaitsLongerThanEverybodysSlice, ()) {
  Bed bed;
  bed.worlds.switch_cost = Us(Any(0, 50));
  bed.AddBusy(Any(1, 8), 1'000);
  auto& victim = bed.worlds.Add(100, 0ns);
  bed.AddBursty(victim, 10);
  bed.worlds.Drive(bed.switcher, 1s);
  const double per_vf = bed.LongestSlice() + D(bed.worst_overrun + bed.worlds.switch_cost);
  const double bound = static_cast<double>(bed.worlds.size()) * per_vf;
  RC_ASSERT(D(bed.worlds.vf(bed.worlds.size() - 1).worst_wait) <= bound);
}

RC_GTEST_PROP(SchedProperty, I8_SleepingGainsNothing, ()) {
  Bed bed;
  bed.AddBusy(Any(1, 5), 1'000);
  bed.AddBursty(bed.worlds.Add(static_cast<uint32_t>(Any(1, 1000)), 0ns), 30);
  const size_t sleeper = bed.worlds.size() - 1;
  for (int step = 0; step < 40; ++step) {
    bed.worlds.Drive(bed.switcher, 10ms);
    RC_ASSERT(bed.Served(sleeper) <= bed.Share(sleeper) * bed.ServedByAll() + bed.LagBound(sleeper));
  }
}

// A program that waits for each of its kernels, with any gaps at all.
SimWorlds::SimVf& AddThinker(Bed& bed, int longest_gap_us) {
  SimWorlds::SimVf& vf = bed.worlds.Add(static_cast<uint32_t>(Any(1, 1000)), Us(Any(1, 3'000)));
  vf.kernel = vf.work;
  for (int n = Any(1, 8); n > 0; --n) vf.thinks.push_back(Us(Any(0, longest_gap_us)));
  return vf;
}

RC_GTEST_PROP(SchedProperty, I15_WaitingForMoreWorkIsBounded, ()) {
  const auto percent = static_cast<uint32_t>(Any(1, 100));
  Bed bed{kStart, percent};
  bed.AddBusy(Any(1, 4), 0);
  const size_t thinkers = static_cast<size_t>(Any(1, 4));
  for (size_t i = 0; i < thinkers; ++i) AddThinker(bed, 1'000);
  for (int step = 0; step < 40; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 20'000)));
    const Account& account = bed.switcher.AccountAt(bed.worlds.now());
    for (size_t i = 0; i < bed.worlds.size(); ++i) {
      const VfAccount vf = account.Of(VfId{static_cast<uint32_t>(i)});
      const double turns = static_cast<double>(vf.received_ns) + bed.FullSlice(i);
      RC_ASSERT(static_cast<double>(vf.anticipated_ns) <= 500e3 + turns * percent / 100 + 1e3);
      RC_ASSERT(vf.anticipated_ns <= vf.received_ns);
    }
  }
}

// Those that always have work lose nothing of what is theirs, and those that wait for their kernels get no more.
RC_GTEST_PROP(SchedProperty, I16_WaitingForMoreWorkTakesNothingFromOthers, ()) {
  Bed bed{kStart, static_cast<uint32_t>(Any(1, 100))};
  const size_t busy = static_cast<size_t>(Any(1, 4));
  bed.AddBusy(static_cast<int>(busy), 1'000);
  AddThinker(bed, 2'000);
  for (int step = 0; step < 40; ++step) {
    bed.worlds.Drive(bed.switcher, 10ms);
    for (size_t i = 0; i < bed.worlds.size(); ++i) {
      if (i < busy)
        RC_ASSERT(bed.Served(i) >= bed.Share(i) * bed.ServedByAll() - bed.LagBound(i));
      else
        RC_ASSERT(bed.Served(i) <= bed.Share(i) * bed.ServedByAll() + bed.LagBound(i));
    }
  }
}

RC_GTEST_PROP(SchedProperty, I11_AccountsOnlyGrowEvenLateInTime, ()) {
  Bed bed{TimePoint{Ns{int64_t{1} << *rc::gen::inRange(0, 63)}} - 1s};
  bed.AddBusy(Any(1, 5), 5'000);
  bed.AddBursty(bed.worlds.Add(100, 0ns), 10);
  std::vector<VfAccount> before(bed.worlds.size());
  for (int step = 0; step < 40; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 10'000)));
    for (size_t i = 0; i < before.size(); ++i) {
      const VfAccount now = bed.switcher.AccountAt(bed.worlds.now()).Of(bed.worlds.vf(i).view.vf);
      RC_ASSERT(now.received_ns >= before[i].received_ns);
      RC_ASSERT(now.entitled_ns >= before[i].entitled_ns);
      RC_ASSERT(now.waited_ns >= before[i].waited_ns);
      RC_ASSERT(now.received_ns <= 1'000'000'000u);
      RC_ASSERT(bed.policy.Debt(bed.worlds.vf(i).view.vf) >= 0ns);
      before[i] = now;
    }
  }
}

RC_GTEST_PROP(SchedProperty, I12_TheSameTraceGivesTheSameDecisions, ()) {
  Bed bed;
  bed.AddBusy(Any(1, 6), 3'000);
  bed.AddBursty(bed.worlds.Add(100, 0ns), 10);
  Bed again;
  for (size_t i = 0; i < bed.worlds.size(); ++i) {
    const auto& vf = bed.worlds.vf(i);
    auto& copy = again.worlds.Add(vf.view.weight, vf.work, vf.view.slice);
    copy.arrivals = vf.arrivals;
    copy.overruns = vf.overruns;
  }
  bed.worlds.Drive(bed.switcher, 200ms);
  again.worlds.Drive(again.switcher, 200ms);
  RC_ASSERT(bed.worlds.turns() == again.worlds.turns());
  RC_ASSERT(bed.worlds.turns().size() > 1u);
}

}  // namespace
}  // namespace vgpud
