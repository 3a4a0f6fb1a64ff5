// SPDX-License-Identifier: Apache-2.0
#include "sched/anticipation.h"

#include <gtest/gtest.h>

#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr VfId kVf{3};
constexpr Ns kSlice = 2ms;
constexpr Anticipation::Options kOptions{.grace = 50us, .percent = 90, .most = 500us};

// A gap of `gap`, after `busy`; what was waited.
Ns Gap(Anticipation& anticipation, Ns gap, Ns busy = 1ms) {
  anticipation.Held(kVf, busy, kSlice);
  const Ns patience = anticipation.Patience(kVf, kSlice);
  if (gap < patience)
    anticipation.Returned(kVf, gap);
  else
    anticipation.GaveUp(kVf, patience);
  anticipation.Held(kVf, std::min(gap, patience), kSlice);
  return std::min(gap, patience);
}

TEST(Anticipation, AFirstGapIsWaitedForAsLongAsAnyMayBe) {
  EXPECT_EQ(500us, Anticipation(kOptions).Patience(kVf, kSlice));
}

TEST(Anticipation, WithoutABudgetOnlyTheGraceIsWaited) {
  Anticipation anticipation({.grace = 50us});
  EXPECT_EQ(50us, anticipation.Patience(kVf, kSlice));
  EXPECT_EQ(10us, Gap(anticipation, 10us));
  EXPECT_EQ(50us, Gap(anticipation, 100us));
}

TEST(Anticipation, ASteadyThinkerIsWaitedForAlsoWhenItIsLateOnce) {
  Anticipation anticipation(kOptions);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(i % 10 == 9 ? 450us : 150us, Gap(anticipation, i % 10 == 9 ? 450us : 150us)) << i;
}

TEST(Anticipation, OneFailureChangesNothing) {
  Anticipation anticipation(kOptions);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(i % 10 == 9 ? 500us : 150us, Gap(anticipation, i % 10 == 9 ? 5ms : 150us)) << i;
}

TEST(Anticipation, AGapThatWouldOutlastTheSliceIsNotWaitedFor) {
  Anticipation anticipation(kOptions);
  for (int i = 0; i < 10; ++i) Gap(anticipation, 150us);
  EXPECT_GT(anticipation.Patience(kVf, 151us), 150us);
  EXPECT_EQ(50us, anticipation.Patience(kVf, 149us));
}

TEST(Anticipation, WaitingInVainBecomesRare) {
  Anticipation anticipation(kOptions);
  int waited = 0;
  for (int i = 0; i < 10'000; ++i) waited += Gap(anticipation, 5ms) > 50us ? 1 : 0;
  EXPECT_GT(waited, 100);  // it goes on trying
  EXPECT_LT(waited, 170);
}

TEST(Anticipation, AProgramThatBecomesQuickerIsWaitedForAgain) {
  Anticipation anticipation(kOptions);
  for (int i = 0; i < 1000; ++i) Gap(anticipation, 5ms);
  int lost = 0;
  for (int i = 0; i < 100; ++i) lost += Gap(anticipation, 150us) < 150us ? 1 : 0;
  EXPECT_LE(lost, 64);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(150us, Gap(anticipation, 150us));
}

// Its gaps are short enough, but they are nearly all of its turns.
TEST(Anticipation, WhoHardlyComputesIsWaitedForWithinTheBudgetOnly) {
  Anticipation anticipation(kOptions);
  Ns waited{0}, held{0};
  for (int i = 0; i < 1000; ++i) {
    const Ns gap = Gap(anticipation, 400us, 5us);
    waited += std::max(Ns{0}, gap - 50us);
    held += 5us + gap;
    EXPECT_LE(waited, kOptions.most + (held + kSlice) * kOptions.percent / 100);
  }
  EXPECT_GT(waited, held / 2);
}

TEST(Anticipation, AVfThatFollowsBeginsAnew) {
  Anticipation anticipation(kOptions);
  for (int i = 0; i < 10; ++i) Gap(anticipation, 5ms);
  EXPECT_EQ(50us, anticipation.Patience(kVf, kSlice));
  anticipation.Forget(kVf);
  EXPECT_EQ(500us, anticipation.Patience(kVf, kSlice));
}

// What is left of the budget, seen through a VF whose gaps are not known.
Ns Left(const Anticipation& anticipation) { return anticipation.Patience(kVf, kSlice); }

TEST(Anticipation, TheBudgetGrowsWithTheTimeOfTurnsUpToItsPartOfASlice) {
  Anticipation anticipation(kOptions);
  anticipation.CutShort(kVf, 10us);
  anticipation.CutShort(kVf, 50us);
  EXPECT_EQ(500us, Left(anticipation));  // the grace is free
  anticipation.CutShort(kVf, 51us);
  EXPECT_EQ(499us, Left(anticipation));
  anticipation.CutShort(kVf, 10ms);
  EXPECT_EQ(50us, Left(anticipation));
  anticipation.Held(kVf, 100us, kSlice);
  EXPECT_EQ(90us, Left(anticipation));
  anticipation.Held(kVf, 1s, kSlice);  // 500 us and 90 % of 2 ms
  anticipation.CutShort(kVf, 50us + 2ms);
  EXPECT_EQ(300us, Left(anticipation));
}

TEST(Anticipation, AShorterSliceTakesNothingOfTheBudgetAway) {
  Anticipation anticipation(kOptions);
  anticipation.Held(kVf, 1s, kSlice);
  anticipation.Held(kVf, 1us, 1us);
  anticipation.CutShort(kVf, 50us + 2ms);
  EXPECT_EQ(300us, Left(anticipation));
}

// The longest that the usual gap may be for it to be waited for.
Ns Usual(const Anticipation& anticipation) {
  for (Ns left{0};; left += 1us)
    if (anticipation.Patience(kVf, left) != kOptions.grace) return left;
}

TEST(Anticipation, AnEighthOfEachGapCounts) {
  Anticipation anticipation(kOptions);
  EXPECT_EQ(0us, Usual(anticipation));
  anticipation.Returned(kVf, 100us);
  EXPECT_EQ(100us, Usual(anticipation));
  anticipation.Returned(kVf, 180us);
  EXPECT_EQ(110us, Usual(anticipation));
  anticipation.Returned(kVf, 30us);
  EXPECT_EQ(100us, Usual(anticipation));
}

TEST(Anticipation, AGapAsLongAsAnyMayBeIsWaitedForAndALongerOneIsNot) {
  Anticipation anticipation({.grace = 50us, .percent = 100});
  anticipation.Held(kVf, 1s, kSlice);
  anticipation.Returned(kVf, 500us);
  EXPECT_EQ(500us, anticipation.Patience(kVf, kSlice));
  anticipation.Returned(kVf, 508us);
  EXPECT_EQ(50us, anticipation.Patience(kVf, kSlice));
}

TEST(Anticipation, AfterEachFailureInARowTwiceAsManyGapsAreNotWaitedFor) {
  Anticipation anticipation(kOptions);
  for (int i = 0; i < 20; ++i) anticipation.GaveUp(kVf, 50us);  // no more than the grace: no failure
  for (const int skipped : {0, 2, 4, 8, 16, 32, 64, 64, 64}) {
    anticipation.Held(kVf, 1s, kSlice);
    EXPECT_EQ(500us, anticipation.Patience(kVf, kSlice));
    anticipation.GaveUp(kVf, 51us);
    int not_waited = 0;
    for (; anticipation.Patience(kVf, kSlice) == 50us; ++not_waited) anticipation.GaveUp(kVf, 50us);
    EXPECT_EQ(skipped, not_waited);
  }
  anticipation.GaveUp(kVf, 500us);
  EXPECT_EQ(50us, anticipation.Patience(kVf, kSlice));
  anticipation.Returned(kVf, 10us);  // begins anew
  for (int failures = 0; failures < 2; ++failures) {
    EXPECT_EQ(500us, anticipation.Patience(kVf, kSlice));
    anticipation.Held(kVf, 1s, kSlice);
    anticipation.GaveUp(kVf, 51us);
  }
  EXPECT_EQ(50us, anticipation.Patience(kVf, kSlice));
}

TEST(Anticipation, VfsThatWereNeverSeenMayBeForgotten) {
  Anticipation anticipation(kOptions);
  anticipation.Forget(VfId{0});
  anticipation.CutShort(VfId{0}, 10ms);
  anticipation.Forget(VfId{1});
  EXPECT_EQ(50us, anticipation.Patience(VfId{0}, kSlice));
  EXPECT_EQ(500us, anticipation.Patience(VfId{1}, kSlice));
  EXPECT_EQ(0us, Anticipation(Anticipation::Options{}).Patience(kVf, kSlice));
}

// --- what programs get done ---

struct Bed {
  SimWorlds worlds{TimePoint{1s}};
  StrictPolicy policy;
  Switcher switcher{worlds, policy, {}};
  explicit Bed(uint32_t percent) : policy(PolicyOptions{.idle_grace = 50us, .anticipate_percent = percent}) {
    worlds.switch_cost = 15us;
  }
  SimWorlds::SimVf& AddThinker(Ns kernel, Ns think) {
    SimWorlds::SimVf& vf = worlds.Add(100, kernel);
    vf.kernel = kernel;
    vf.thinks = {think};
    return vf;
  }
};

// Kernels in a second.
size_t Done(Ns kernel, Ns think, size_t neighbours, uint32_t percent, double* neighbours_part = nullptr) {
  Bed bed(percent);
  bed.AddThinker(kernel, think);
  for (size_t i = 0; i < neighbours; ++i) bed.worlds.Add(100, kEndless);
  bed.worlds.Drive(bed.switcher, 1s);
  if (neighbours_part != nullptr)
    *neighbours_part = static_cast<double>(bed.worlds.vf(1).served.count()) * static_cast<double>(neighbours) / 1e9;
  return bed.worlds.vf(0).kernels;
}

struct FeltCase {
  const char* name;
  Ns kernel;
  Ns think;
  size_t neighbours;
  bool suffers;  // with the grace alone
};
class FeltTest : public testing::TestWithParam<FeltCase> {};

TEST_P(FeltTest, AShareIsWorthItsPartOfWhatOneDoesAlone) {
  const FeltCase& c = GetParam();
  const double alone = static_cast<double>(Done(c.kernel, c.think, 0, 90));
  double neighbours = 0;
  const double beside = static_cast<double>(Done(c.kernel, c.think, c.neighbours, 90, &neighbours));
  const double share = 1 / static_cast<double>(1 + c.neighbours);
  EXPECT_GE(beside / (alone * share), 0.92);
  EXPECT_GE(neighbours / (1 - share), 0.97);
  if (!c.suffers) return;
  EXPECT_LT(static_cast<double>(Done(c.kernel, c.think, c.neighbours, 0)) / (alone * share), 0.7);
}

INSTANTIATE_TEST_SUITE_P(, FeltTest,
                         testing::ValuesIn(std::vector<FeltCase>{
                             {"short_kernels", 20us, 4us, 1, false},
                             {"quick_host", 100us, 20us, 1, false},
                             {"slow_host", 500us, 100us, 1, true},
                             {"long_kernels", 2ms, 400us, 1, false},
                             {"four", 300us, 60us, 3, true},
                             {"eight", 300us, 60us, 7, true},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace vgpud
