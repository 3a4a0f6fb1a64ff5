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
  EXPECT_GE(paid_back, 100ms);
  EXPECT_LE(paid_back, 110ms);
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

}  // namespace
}  // namespace vgpud
