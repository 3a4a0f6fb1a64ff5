// SPDX-License-Identifier: Apache-2.0
#include "sched/reserve.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

VfView Vf(uint32_t id, uint32_t guarantee = 0, uint32_t limit = kWhole) {
  VfView vf{.vf = VfId{id}, .runnable = true};
  vf.guarantee = guarantee;
  vf.limit = limit;
  return vf;
}

TEST(ReserveTest, DebtOfATurnOfTheRestOutlivesSleep) {
  ReservePolicy policy{PolicyOptions{}};
  std::vector<VfView> vfs{Vf(0), Vf(1)};
  TimePoint now{1ns};
  const auto pick = policy.Next(vfs, now);
  ASSERT_TRUE(pick);
  now += pick->slice + 1ms;
  policy.Ended(*pick, pick->slice + 1ms, now);
  ASSERT_EQ(policy.Debt(pick->vf), 1ms);
  VfView& debtor = vfs[static_cast<size_t>(pick->vf)];
  debtor.runnable = false;
  policy.Show(vfs, now);
  debtor.runnable = true;
  policy.Show(vfs, now + 1s);
  EXPECT_EQ(policy.Debt(pick->vf), 1ms);
}

TEST(ReserveTest, ALaterVfOfTheSameNumberIsOwedItsGuaranteeAtOnce) {
  ReservePolicy policy{PolicyOptions{}};
  const std::vector<VfView> vfs{Vf(0), Vf(1, kWhole / 10)};
  TimePoint now{1ns};
  const auto first = policy.Next(vfs, now);
  ASSERT_EQ(first->vf, VfId{1});
  now += first->slice;
  policy.Ended(*first, first->slice, now);
  policy.Forget(VfId{1}, now);
  EXPECT_EQ(policy.Next(vfs, now)->vf, VfId{1});
}

// Half of 102 ms is owed, and half of the time in which that is paid back.
TEST(ReserveTest, WhatAStallTookFromAGuaranteeIsPaidBackForAWindowOnly) {
  ReservePolicy policy{PolicyOptions{}};
  const std::vector<VfView> vfs{Vf(0, kWhole / 2), Vf(1), Vf(2)};
  TimePoint now{1ns};
  const auto run = [&](const Policy::Pick& pick, Ns used) {
    now += used;
    policy.Ended(pick, used, now);
  };
  auto pick = policy.Next(vfs, now);
  for (; pick->vf != VfId{1}; pick = policy.Next(vfs, now)) run(*pick, pick->slice);
  run(*pick, 10s);
  Ns paid_back{0};
  for (pick = policy.Next(vfs, now); pick->vf == VfId{0} && paid_back < 1s; pick = policy.Next(vfs, now)) {
    paid_back += pick->slice;
    run(*pick, pick->slice);
  }
  EXPECT_EQ(pick->vf, VfId{2});
  EXPECT_GE(paid_back, 102ms);
  EXPECT_LE(paid_back, 110ms);
}

// Half of the time is owed; with a guarantee of 1 s to pay for it would be more, if the slice of a VF that is gone or
// has a shorter one counted.
TEST(ReserveTest, TheSliceOfAVfOfThePastDoesNotLengthenTheWindow) {
  for (const bool gone : {true, false}) {
    ReservePolicy policy{PolicyOptions{}};
    std::vector<VfView> vfs{Vf(0, kWhole / 2), Vf(1), Vf(2), Vf(3)};
    vfs[3].slice = 1s;
    TimePoint now{1ns};
    const auto run = [&](const Policy::Pick& pick, Ns used) {
      now += used;
      policy.Ended(pick, used, now);
    };
    const auto run_until = [&](VfId vf) {
      auto pick = policy.Next(vfs, now);
      for (; pick->vf != vf; pick = policy.Next(vfs, now)) run(*pick, pick->slice);
      return *pick;
    };
    run(run_until(VfId{3}), 1s);
    if (gone) {
      policy.Forget(VfId{3}, now);
      vfs.pop_back();
    } else {
      vfs[3].slice = 2ms;
    }
    run(run_until(VfId{1}), 10s);
    Ns paid_back{0};
    for (auto pick = policy.Next(vfs, now); pick->vf == VfId{0} && paid_back < 2s; pick = policy.Next(vfs, now)) {
      paid_back += pick->slice;
      run(*pick, pick->slice);
    }
    EXPECT_LE(paid_back, 110ms) << gone;
  }
}

// The time that two busy VFs with slices of 20 ms get, turn by turn.
struct TwoBusy {
  ReservePolicy policy{[] {
    PolicyOptions options;
    options.base_slice = 20ms;
    return options;
  }()};
  std::vector<VfView> vfs{Vf(0), Vf(1)};
  TimePoint now{1ns};
  // What VF 0 gets of `length`.
  double Run(Ns length) {
    const TimePoint start = now;
    Ns served{0};
    while (now < start + length) {
      const auto pick = policy.Next(vfs, now);
      if (!pick) {
        now = policy.Wake();
        continue;
      }
      now += pick->slice;
      policy.Ended(*pick, pick->slice, now);
      if (pick->vf == VfId{0}) served += pick->slice;
    }
    return static_cast<double>(served.count()) / static_cast<double>((now - start).count());
  }
};

TEST(ReserveTest, ARaisedGuaranteeCountsAtOnce) {
  TwoBusy bed;
  bed.vfs[0].guarantee = kWhole / 1000;
  bed.Run(1s);
  bed.vfs[0].guarantee = kWhole * 6 / 10;
  EXPECT_NEAR(bed.Run(1s), 0.8, 0.03);  // and half of the rest
}

TEST(ReserveTest, AGuaranteeThatWasTakenAwayForAMomentIsNoNewOne) {
  TwoBusy bed;
  bed.vfs[1].guarantee = kWhole / 10;
  bed.vfs[0].guarantee = kWhole / 100;
  ASSERT_EQ(bed.Run(20ms), 0);  // both have a turn of their guarantee
  ASSERT_EQ(bed.Run(20ms), 1);
  bed.vfs[0].guarantee = 0;
  bed.policy.Show(bed.vfs, bed.now);
  bed.vfs[0].guarantee = kWhole / 2;
  bed.policy.Show(bed.vfs, bed.now);
  // Ahead by 20 ms, which are 40 ms at a half and were 2 s.
  EXPECT_NEAR(bed.Run(4s), 0.5 + 0.4 / 2, 0.03);
}

TEST(ReserveTest, ANewLimitFindsTheSameTimeInTheBucket) {
  TwoBusy bed;
  bed.vfs.pop_back();
  bed.vfs[0].limit = kWhole / 1000;
  const TimePoint start = bed.now;
  bed.Run(20ms);
  bed.now = start + 10s;  // half of a slice
  bed.vfs[0].limit = kWhole / 2;
  ASSERT_FALSE(bed.policy.Next(bed.vfs, bed.now));
  EXPECT_EQ(bed.policy.Wake(), start + 10s + 20ms);
  bed.vfs[0].limit = kWhole / 4;
  ASSERT_FALSE(bed.policy.Next(bed.vfs, bed.now));
  EXPECT_EQ(bed.policy.Wake(), start + 10s + 40ms);
}

TEST(ReserveTest, ARaisedLimitEndsTheWaitForAnOverrun) {
  TwoBusy bed;
  bed.vfs.pop_back();
  bed.vfs[0].limit = kWhole / 1000;
  const auto pick = bed.policy.Next(bed.vfs, bed.now);
  bed.now += 30ms;
  bed.policy.Ended(*pick, 30ms, bed.now);
  bed.vfs[0].limit = kWhole / 2;
  ASSERT_FALSE(bed.policy.Next(bed.vfs, bed.now));
  EXPECT_GT(bed.policy.Wake(), bed.now + 58ms);  // 10 ms overrun and a slice of 20 ms, at a half
  EXPECT_LE(bed.policy.Wake(), bed.now + 60ms);
}

TEST(ReserveTest, ALimitIsKeptToTheNanosecondForALongTime) {
  PolicyOptions options;
  options.base_slice = 100us;
  ReservePolicy policy{options};
  constexpr int64_t kLimit = 600'007;
  const std::vector<VfView> vfs{Vf(0, 0, kLimit)};
  const TimePoint start{1ns};
  TimePoint now = start;
  Ns served{0};
  policy.Show(vfs, now);
  for (int turn = 0; turn < 300'000;) {
    const auto pick = policy.Choose(now);
    if (!pick) {
      ASSERT_GT(policy.Wake(), now);
      now = policy.Wake();
      continue;
    }
    ++turn;
    served += pick->slice;
    now += pick->slice;
    policy.Ended(*pick, pick->slice, now);
    ASSERT_LE((served - 100us).count(), (now - start).count() / 1e6 * kLimit);
  }
}

TEST(ReserveTest, ShorterSlicesEndTheWaitForTheBucketEarlier) {
  PolicyOptions options;
  ReservePolicy policy{options};
  const std::vector<VfView> vfs{Vf(0, 0, kWhole / 2)};
  TimePoint now{1ns};
  const auto pick = policy.Next(vfs, now);
  ASSERT_TRUE(pick);
  now += 2ms;
  policy.Ended(*pick, 2ms, now);
  ASSERT_FALSE(policy.Next(vfs, now));
  EXPECT_EQ(policy.Wake(), now + 2ms);
  options.base_slice = 1'500us;
  policy.SetOptions(options, now);
  EXPECT_EQ(policy.Wake(), now + 1ms);
  EXPECT_FALSE(policy.Next(vfs, now + 1ms - 1ns));
  EXPECT_TRUE(policy.Next(vfs, now + 1ms));
}

// The goal for the wait makes a slice of 4 ms of two with work and of 8 ms of one.
TEST(ReserveTest, ASliceThatGrewIsCutToWhatTheBucketHolds) {
  PolicyOptions options;
  options.max_wait = 8ms;
  ReservePolicy policy{options};
  std::vector<VfView> vfs{Vf(0, 0, kWhole / 2), Vf(1)};
  TimePoint now{1ns};
  const auto turn = [&](uint32_t vf, Ns slice) {
    const auto pick = policy.Next(vfs, now);
    ASSERT_TRUE(pick);
    EXPECT_EQ(VfId{vf}, pick->vf);
    EXPECT_EQ(slice, pick->slice);
    now += pick->slice;
    policy.Ended(*pick, pick->slice, now);
  };
  turn(0, 4ms);
  turn(1, 8ms);  // meanwhile the other is at its limit
  vfs[1].runnable = false;
  EXPECT_EQ(8ms, policy.FullSlice(vfs[0]));
  turn(0, 6ms);  // half of the 12 ms since the bucket was full
}

}  // namespace
}  // namespace vgpud
