// SPDX-License-Identifier: Apache-2.0
// The invariants of all policies over random VFs, groups, classes, weights, overruns, arrivals, pauses and changes.
// Those of `strict` alone are in sched_property_test.cc.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sched/registry.h"
#include "tests/unit/sched/random.h"
#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

// How far `value` rises and falls between any two of its samples.
class Range {
 public:
  void Add(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
    rise_ = std::max(rise_, value - least_);
    fall_ = std::max(fall_, most_ - value);
  }
  double rise() const { return rise_; }
  double fall() const { return fall_; }

 private:
  double least_ = 0, most_ = 0, rise_ = 0, fall_ = 0;
};

struct Bed {
  SimWorlds worlds;
  PolicyOptions options;
  std::vector<std::unique_ptr<Policy>> policies;  // the last one decides
  Switcher switcher;
  Ns worst_overrun{0};

  explicit Bed(std::string_view policy, const PolicyOptions& with = {}, TimePoint start = kStart)
      : worlds(start),
        options(with),
        policies(Make(policy, with)),
        switcher(worlds, *policies[0], {.preempt_timeout = 1s}) {
    worlds.may_idle = policy == "reserve";
  }
  static std::vector<std::unique_ptr<Policy>> Make(std::string_view policy, const PolicyOptions& options) {
    std::vector<std::unique_ptr<Policy>> made;
    made.push_back(*MakePolicy(policy, options));
    return made;
  }
  Policy& policy() { return *policies.back(); }

  SimWorlds::SimVf& Add(Ns work, int overrun_limit_us = 0) {
    auto& vf = worlds.Add(static_cast<uint32_t>(Any(1, 500)), work, Any(0, 4) == 0 ? Us(Any(100, 10'000)) : Ns{0});
    for (int n = overrun_limit_us == 0 ? 0 : Any(0, 5); n > 0; --n) {
      vf.overruns.push_back(Us(Any(0, overrun_limit_us)));
      worst_overrun = std::max(worst_overrun, vf.overruns.back());
    }
    return vf;
  }
  void Bursts(SimWorlds::SimVf& vf, int count, int longest_us = 8'000) {
    Ns at{0};
    for (int i = 0; i < count; ++i) {
      at += Us(Any(0, 20'000));
      vf.arrivals.push_back({at, Us(Any(1, longest_us))});
    }
  }
  Ns Full(size_t i) { return policy().FullSlice(worlds.vf(i).view); }
  Ns Served(size_t i) { return worlds.vf(i).served; }
  Ns ServedByAll() {
    Ns all{0};
    for (size_t i = 0; i < worlds.size(); ++i) all += Served(i);
    return all;
  }
  // One slice and overrun of everybody.
  double Round() {
    double sum = 0;
    for (size_t i = 0; i < worlds.size(); ++i) sum += D(Full(i) + worst_overrun);
    return sum;
  }
};

// Any VFs under any policy: knobs at random, work at random.
void AnyVfs(Bed& bed, int count) {
  const bool reserve = bed.worlds.may_idle;
  for (int i = 0; i < count; ++i) {
    auto& vf = bed.Add(Coin() ? kEndless : 0ns, 2'000);
    if (vf.work == 0ns) bed.Bursts(vf, 10);
    vf.view.priority = static_cast<uint8_t>(Any(0, kPriorities));
    vf.view.group = Coin() ? kNoGroup : static_cast<uint8_t>(Any(0, 3));
    vf.view.wake_first = Coin();
    if (!reserve) continue;
    vf.view.limit = static_cast<uint32_t>(Any(50'000, kWhole + 1));
    vf.view.guarantee = std::min(vf.view.limit, static_cast<uint32_t>(Any(0, 800'000 / count)));
    vf.view.burst = Us(Any(0, 5'000));
  }
}
PolicyOptions AnyOptions() {
  PolicyOptions options;
  options.base_slice = Us(Any(200, 6'000));
  options.averaging_factor = static_cast<uint32_t>(Coin() ? 1 : Any(1, 61));
  options.floor_percent = static_cast<uint32_t>(Any(1, 26));
  options.idle = Any(0, 4) == 0 ? WhenIdle::kHold : WhenIdle::kYield;
  options.max_wait = Coin() ? 0ns : Us(Any(1'000, 100'000));
  for (uint32_t& weight : options.group_weights) weight = static_cast<uint32_t>(Any(1, 500));
  return options;
}
std::string_view AnyPolicy() { return Policies()[static_cast<size_t>(Any(0, 3))].name; }

// I1, I11, I14 (by SimWorlds) for every policy, also late in time and with changes of everything under way.
RC_GTEST_PROP(PolicyProperty, I1_I11_EveryNanosecondIsChargedOnceWhateverChanges, ()) {
  const TimePoint start{Ns{int64_t{1} << Any(0, 63)}};
  Bed bed(AnyPolicy(), AnyOptions(), start > TimePoint{Ns{1'000}} ? start - 2s : start);
  AnyVfs(bed, Any(1, 9));
  bed.worlds.may_idle = true;
  bed.worlds.switch_cost = Us(Any(0, 50));
  int changes = 0;
  bed.worlds.at_boundary = [&] {
    if (changes == 0) return;
    --changes;
    auto& vf = bed.worlds.vf(static_cast<size_t>(Any(0, static_cast<int>(bed.worlds.size()))));
    switch (Any(0, 9)) {
      case 7:
        vf.view.wake_first = !vf.view.wake_first;
        break;
      case 0:
        vf.view.weight = static_cast<uint32_t>(Any(1, 10'001));
        break;
      case 1:
        vf.view.slice = Us(Any(100, 5'000));
        break;
      case 2:
        vf.view.priority = static_cast<uint8_t>(Any(0, kPriorities));
        break;
      case 3:
        vf.view.group = static_cast<uint8_t>(Any(0, kNoGroup + 1));
        break;
      case 4:
        vf.view.paused = !vf.view.paused;
        break;
      case 5:
        bed.policy().SetOptions(AnyOptions(), bed.worlds.now());
        break;
      case 6:
        bed.policies.push_back(*MakePolicy(AnyPolicy(), AnyOptions()));
        bed.switcher.SetPolicy(bed.policy(), bed.worlds.now());
        break;
      default:
        bed.switcher.Forget(vf.view.vf);
        vf.served = 0ns;
        break;
    }
  };
  bed.worlds.Drive(bed.switcher, 1ms);
  const auto& first = bed.switcher.AccountAt(bed.worlds.now());
  const uint64_t before = AllTime(first);
  uint64_t round = bed.policy().round();
  for (int step = 0; step < 100; ++step) {
    changes = Any(0, 3);
    bed.worlds.Drive(bed.switcher, 2ms);
    RC_ASSERT(bed.policy().round() >= round);
    round = bed.policy().round();
    for (size_t i = 0; i < bed.worlds.size(); ++i) RC_ASSERT(bed.policy().Debt(bed.worlds.vf(i).view.vf) >= 0ns);
  }
  const auto& account = bed.switcher.AccountAt(bed.worlds.now());
  RC_ASSERT(AllTime(account) - before == 200'000'000u);
  for (size_t i = 0; i < bed.worlds.size(); ++i)
    RC_ASSERT(account.Of(bed.worlds.vf(i).view.vf).received_ns <= account.run_ns());
}

RC_GTEST_PROP(PolicyProperty, I12_TheSameTraceGivesTheSameDecisions, ()) {
  const auto policy = AnyPolicy();
  const auto options = AnyOptions();
  Bed bed(policy, options), again(policy, options);
  AnyVfs(bed, Any(1, 9));
  for (size_t i = 0; i < bed.worlds.size(); ++i) {
    const auto& vf = bed.worlds.vf(i);
    auto& copy = again.worlds.Add(100, vf.work);
    copy.view = vf.view;
    copy.arrivals = vf.arrivals;
    copy.overruns = vf.overruns;
  }
  bed.worlds.Drive(bed.switcher, 300ms);
  again.worlds.Drive(again.switcher, 300ms);
  RC_ASSERT(bed.worlds.turns() == again.worlds.turns());
}

// I2, I9: with averaging factor F up to F overruns stand as debt.
RC_GTEST_PROP(PolicyProperty, I2_I9_LagStaysWithinTheBoundOfTheAveragingFactor, ()) {
  PolicyOptions options;
  options.averaging_factor = static_cast<uint32_t>(Any(1, 61));
  Bed bed(Coin() ? "strict" : "relaxed", options);
  for (int i = Any(2, 9); i > 0; --i) bed.Add(kEndless, *rc::gen::element(1, 200, 5'000));
  const double standing = D(bed.worst_overrun) * (options.averaging_factor + (options.averaging_factor > 1 ? 1 : 0));
  double all_slices = 0;
  for (size_t i = 0; i < bed.worlds.size(); ++i) all_slices += D(bed.Full(i));
  for (int step = 0; step < 100; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(100, 60'000)));
    for (size_t i = 0; i < bed.worlds.size(); ++i) {
      const double share = D(bed.Full(i)) / all_slices;
      const double lag = D(bed.Served(i)) - share * D(bed.ServedByAll());
      const double others = static_cast<double>(bed.worlds.size() - 1) * standing + all_slices - D(bed.Full(i));
      RC_ASSERT(lag <= (1 - share) * (D(bed.Full(i)) + standing) + 1e3);
      RC_ASSERT(-lag <= share * others + 1e3);
    }
  }
}

// I9 with groups and classes: what VFs receive tends to what TreeShares says, the error does not grow with time.
RC_GTEST_PROP(PolicyProperty, I9_BusyVfsReceiveWhatTheyAreEntitledTo, ()) {
  PolicyOptions options = AnyOptions();
  options.averaging_factor = 1;
  options.idle = WhenIdle::kYield;
  Bed bed("strict", options);
  for (int i = Any(2, 10); i > 0; --i) {
    auto& vf = bed.Add(kEndless, 500);
    vf.view.priority = static_cast<uint8_t>(Any(1, 3));
    vf.view.group = Coin() ? kNoGroup : static_cast<uint8_t>(Any(0, 3));
  }
  bed.worlds.Drive(bed.switcher, 1ms);
  // With max_wait the base slice follows the VFs that are busy, up to max_slice.
  const Ns longest_base = options.max_wait > 0ns ? options.max_slice : options.base_slice;
  const double group_slices = 3 * 5 * D(longest_base);  // three groups of weight 500 at most
  for (int step = 0; step < 20; ++step) {
    bed.worlds.Drive(bed.switcher, 5s);
    const Account& account = bed.switcher.AccountAt(bed.worlds.now());
    for (size_t i = 0; i < bed.worlds.size(); ++i) {
      const VfAccount vf = account.Of(bed.worlds.vf(i).view.vf);
      const double error = static_cast<double>(vf.received_ns) - static_cast<double>(vf.entitled_ns);
      RC_ASSERT(std::abs(error) <= 2 * (bed.Round() + group_slices) + 1e6);
    }
  }
}

// I8, I13: a tenant that runs as k VFs, which sleep, wake, overrun and hand over to each other as they like, takes no
// more than its group's share and a bounded rest, in any interval.
RC_GTEST_PROP(PolicyProperty, I8_I13_ATenantGainsNothingBySplittingSleepingOrOverrunning, ()) {
  PolicyOptions options;
  options.group_weights[0] = static_cast<uint32_t>(Any(10, 500));
  Bed bed("strict", options);
  bed.Add(kEndless);
  const int members = Any(1, 7);
  for (int i = 0; i < members; ++i) {
    auto& vf = bed.Add(0ns, 3'000);
    vf.view.group = 0;
    bed.Bursts(vf, 60, 6'000);
  }
  const double group_slice = D(options.base_slice) * options.group_weights[0] / 100;
  const double share = group_slice / (group_slice + D(bed.Full(0)));
  Range gain;
  for (int step = 0; step < 300; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 5'000)));
    gain.Add(D(bed.ServedByAll() - bed.Served(0)) - share * D(bed.ServedByAll()));
  }
  const double ahead = (1 - share) * (group_slice + D(bed.worst_overrun));
  const double behind = share * D(bed.Full(0));
  RC_ASSERT(gain.rise() <= ahead + behind + (1 - share) * D(bed.worst_overrun) + 1e3);
}

// The same for one VF without a group.
RC_GTEST_PROP(PolicyProperty, I8_SleepingAndOverrunningGainNothingInAnyInterval, ()) {
  PolicyOptions options;
  Bed bed("strict", options);
  for (int i = Any(1, 5); i > 0; --i) bed.Add(kEndless);
  auto& sleeper = bed.Add(0ns, 5'000);
  bed.Bursts(sleeper, 60, 20'000);
  const size_t last = bed.worlds.size() - 1;
  double all = 0;
  for (size_t i = 0; i <= last; ++i) all += D(bed.Full(i));
  const double share = D(bed.Full(last)) / all;
  Range gain;
  for (int step = 0; step < 300; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 5'000)));
    gain.Add(D(bed.Served(last)) - share * D(bed.ServedByAll()));
  }
  RC_ASSERT(gain.rise() <=
            (1 - share) * (D(bed.Full(last)) + 2 * D(bed.worst_overrun)) + share * (all - D(bed.Full(last))) + 1e3);
}

// I5: with idle = hold a VF's turns begin at the same moments whatever the others do.
RC_GTEST_PROP(PolicyProperty, I5_HeldTurnsDoNotDependOnTheLoadOfOthers, ()) {
  PolicyOptions options;
  options.idle = WhenIdle::kHold;
  const int count = Any(1, 8);
  std::vector<uint32_t> weights;
  for (int i = 0; i < count; ++i) weights.push_back(static_cast<uint32_t>(Any(10, 400)));
  std::vector<TimePoint> starts[2];
  for (auto& list : starts) {
    Bed bed("strict", options);
    for (int i = 0; i < count; ++i) {
      auto& vf = bed.worlds.Add(weights[static_cast<size_t>(i)], i == 0 || Coin() ? kEndless : 0ns);
      if (vf.work == 0ns) bed.Bursts(vf, Any(0, 20));
    }
    bed.worlds.Drive(bed.switcher, 500ms);
    for (const auto& turn : bed.worlds.turns())
      if (turn.vf == VfId{0}) list.push_back(turn.start);
  }
  RC_ASSERT(starts[0] == starts[1]);
  RC_ASSERT(starts[0].size() > 1u);
}

// I7, the limit: in any interval no more than rate x time, a slice, the burst and one overrun.
RC_GTEST_PROP(PolicyProperty, I7_NobodyExceedsItsLimitInAnyInterval, ()) {
  Bed bed("reserve");
  const int count = Any(1, 7);
  for (int i = 0; i < count; ++i) {
    auto& vf = bed.Add(Coin() ? kEndless : 0ns, 1'000);
    if (vf.work == 0ns) bed.Bursts(vf, 50, 30'000);
    vf.view.limit = static_cast<uint32_t>(Any(20'000, kWhole));
    vf.view.guarantee = std::min(vf.view.limit, static_cast<uint32_t>(Any(0, 900'000 / count)));
    vf.view.burst = Coin() ? 0ns : Us(Any(0, 10'000));
  }
  std::vector<Range> over(bed.worlds.size());
  for (int step = 0; step < 200; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, 10'000)));
    for (size_t i = 0; i < over.size(); ++i) {
      const double rate = bed.worlds.vf(i).view.limit / double{kWhole};
      over[i].Add(D(bed.Served(i)) - rate * D(bed.worlds.now() - kStart));
      RC_ASSERT(over[i].rise() <= D(bed.Full(i) + bed.worlds.vf(i).view.burst + bed.worst_overrun) + 1e3);
    }
  }
}

// I7, the guarantee: a VF with work gets its part of any interval but for two slices of its own (one may come early and
// the next one late), and of the time by which one that is due can be late: somebody's turn and what all overrun.
void CheckGuarantee(Bed& bed, int steps, int step_us, double more = 0) {
  Ns longest{0}, overruns{0};
  for (size_t i = 0; i < bed.worlds.size(); ++i) {
    const auto& own = bed.worlds.vf(i).overruns;
    longest = std::max(longest, bed.Full(i));
    overruns += own.empty() ? 0ns : *std::max_element(own.begin(), own.end());
  }
  const auto& own = bed.worlds.vf(0).overruns;
  const Ns own_overrun = own.empty() ? 0ns : *std::max_element(own.begin(), own.end());
  const double rate = bed.worlds.vf(0).view.guarantee / double{kWhole};
  const double bound =
      (1 - rate) * D(2 * bed.Full(0) + own_overrun) + rate * (D(longest + bed.worst_overrun + overruns) + more);
  Range ahead;
  for (int step = 0; step < steps; ++step) {
    bed.worlds.Drive(bed.switcher, Us(Any(1, step_us)));
    ahead.Add(D(bed.Served(0)) - rate * D(bed.worlds.now() - kStart));
    RC_ASSERT(ahead.fall() <= bound + 1e3);
  }
}

RC_GTEST_PROP(PolicyProperty, I7_AGuaranteeIsKeptInAnyInterval, ()) {
  Bed bed("reserve");
  const int count = Any(1, 8);
  for (int i = 0; i < count; ++i) {
    auto& vf = bed.Add(i == 0 || Coin() ? kEndless : 0ns, 1'000);
    if (vf.work == 0ns) bed.Bursts(vf, 50, 30'000);
    vf.view.guarantee = static_cast<uint32_t>(Any(1'000, 950'000 / count));
    vf.view.priority = static_cast<uint8_t>(Any(0, kPriorities));
  }
  CheckGuarantee(bed, 300, 10'000);
}

// Slices, and so delays, of any length that can be set, and limits below which the guarantee just fits.
RC_GTEST_PROP(PolicyProperty, I7_AGuaranteeIsKeptBesideLongSlices, ()) {
  Bed bed("reserve");
  const int count = Any(1, 8);
  for (int i = 0; i < count; ++i) {
    auto& vf = bed.Add(kEndless, 1'000);
    if (Coin()) vf.view.slice = Us(Any(100, 1'000'000));
    vf.view.guarantee = static_cast<uint32_t>(Any(1'000, 950'000 / count));
  }
  CheckGuarantee(bed, 300, 1'000'000);
}

// A turn of the rest may leave the bucket empty when a guaranteed one is due, which everybody can do to the others. And
// what the bucket cannot hold while it is full is lost for good: it must hold what is earned during the longest delay.
RC_GTEST_PROP(PolicyProperty, I7_AGuaranteeIsKeptBelowALimitWithEnoughBurst, ()) {
  Bed bed("reserve");
  const int count = Any(1, 8);
  for (int i = 0; i < count; ++i) {
    auto& vf = bed.Add(i == 0 || Coin() ? kEndless : 0ns, 1'000);
    if (vf.work == 0ns) bed.Bursts(vf, 50, 30'000);
    vf.view.guarantee = static_cast<uint32_t>(Any(1'000, 950'000 / count));
    vf.view.limit = static_cast<uint32_t>(Any(static_cast<int>(vf.view.guarantee), kWhole + 1));
  }
  const double delay = 2 * bed.Round();
  for (int i = 0; i < count; ++i) {
    auto& view = bed.worlds.vf(static_cast<size_t>(i)).view;
    view.burst = Ns{static_cast<int64_t>(delay * view.limit / kWhole)};
  }
  CheckGuarantee(bed, 300, 10'000, delay);
}

// I10: whoever comes, goes, pauses and resumes, two VFs that stay keep their ratio to a slice and an overrun each.
RC_GTEST_PROP(PolicyProperty, I10_ComingAndGoingLeavesTheOthersAlone, ()) {
  Bed bed("strict");
  const size_t staying = static_cast<size_t>(Any(2, 5));
  const int all = static_cast<int>(staying) + Any(1, 6);
  for (int i = 0; i < all; ++i) bed.Add(kEndless, 1'000);
  bool change = false;
  bed.worlds.at_boundary = [&] {
    if (!change) return;
    change = false;
    auto& vf = bed.worlds.vf(static_cast<size_t>(Any(static_cast<int>(staying), all)));
    vf.view.paused = !vf.view.paused;
    if (Coin()) bed.switcher.Forget(vf.view.vf);
  };
  for (int step = 0; step < 300; ++step) {
    change = true;
    bed.worlds.Drive(bed.switcher, Us(Any(1, 8'000)));
    for (size_t i = 1; i < staying; ++i) {
      const double a = D(bed.Full(0)), b = D(bed.Full(i)), over = D(bed.worst_overrun);
      RC_ASSERT(std::abs(D(bed.Served(0)) / a - D(bed.Served(i)) / b) <= 1 + std::max(over / a, over / b) + 1e-6);
    }
  }
}

// I6: no ready VF waits longer than a turn of everybody else and what they overrun; a lower class until its floor
// allows a turn.
RC_GTEST_PROP(PolicyProperty, I6_ALowerClassIsServedWithinItsFloor, ()) {
  PolicyOptions options;
  options.floor_percent = static_cast<uint32_t>(Any(1, 26));
  Bed bed("strict", options);
  for (int i = Any(1, 4); i > 0; --i) bed.worlds.Add(100, kEndless).view.priority = 3;
  const int low = Any(1, 4);
  for (int i = 0; i < low; ++i) bed.worlds.Add(100, kEndless).view.priority = 1;
  bed.worlds.Drive(bed.switcher, 20s);
  const double bound = D(options.base_slice) * low / (options.floor_percent / 100.0) + 2 * D(options.base_slice);
  RC_ASSERT(D(bed.worlds.vf(bed.worlds.size() - 1).worst_wait) <= bound);
}

TEST(LagTest, LagOverBoundForTwoToSixtyFourVfs) {
  for (const uint32_t n : {2u, 4u, 8u, 16u, 32u, 64u}) {
    for (const Ns overrun : {Ns{0}, Us(100), Us(1'000), Us(6'000)}) {
      SimWorlds worlds{kStart};
      StrictPolicy policy{2ms};
      Switcher switcher{worlds, policy, {}};
      for (uint32_t i = 0; i < n; ++i) worlds.Add(100, kEndless);
      worlds.vf(0).overruns = {overrun};
      const double bound = (1 - 1.0 / n) * D(2ms + overrun) + 1e3;
      double worst = 0;
      for (int step = 0; step < 3'000; ++step) {
        worlds.Drive(switcher, Us(2'777));
        Ns all{0};
        for (uint32_t i = 0; i < n; ++i) all += worlds.vf(i).served;
        for (uint32_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(D(worlds.vf(i).served) - D(all) / n));
      }
      EXPECT_LE(worst, bound) << n << " VFs, overrun " << overrun.count();
      std::printf("lag/bound N=%-2u P=%-4lld us: %.3f\n", n, static_cast<long long>(overrun.count() / 1'000),
                  worst / bound);
    }
  }
}

TEST(StepsTest, TheSuiteTookAMillionSteps) {
  if (testing::GTEST_FLAG(filter) != "*") GTEST_SKIP() << "only some tests ran";
  std::printf("steps: %llu\n", static_cast<unsigned long long>(SimWorlds::steps()));
  EXPECT_GE(SimWorlds::steps(), 1'000'000u);
}

}  // namespace
}  // namespace vgpud
