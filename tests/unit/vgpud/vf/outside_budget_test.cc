// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/outside_budget.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

TEST(OutsideBudgetTest, OneThatComputesInItsTurnsOnlyIsNeverOver) {
  OutsideBudget budget;
  for (int look = 0; look < 1000; ++look) EXPECT_FALSE(budget.Charge(0ms, 2ms, 100ms));
  EXPECT_FALSE(budget.over());
}

TEST(OutsideBudgetTest, AShortBurstIsFree) {
  OutsideBudget budget;
  EXPECT_FALSE(budget.Charge(100ms, 2ms, 100ms));
  EXPECT_FALSE(budget.over());
}

TEST(OutsideBudgetTest, OneThatGoesOnIsOverUntilHalfABurstIsSavedUpAgain) {
  OutsideBudget budget;
  int looks = 0;
  for (; !budget.over(); ++looks) budget.Charge(100ms, 2ms, 100ms);
  EXPECT_EQ(2, looks);
  for (int more = 0; more < 100; ++more) budget.Charge(100ms, 2ms, 100ms);
  looks = 0;
  for (; budget.over(); ++looks) budget.Charge(0ms, 2ms, 100ms);
  EXPECT_EQ(75, looks);  // a burst owed and half a burst saved
  EXPECT_EQ(1u, budget.times());
  EXPECT_EQ(17500ms, budget.over_for());
}

TEST(OutsideBudgetTest, ToTheNanosecond) {
  OutsideBudget budget;
  EXPECT_EQ(100ms, Ns{OutsideBudget::kBurst});
  EXPECT_FALSE(budget.Charge(102ms, 2ms, 100ms)) << "all that was saved up is used, and nothing owed";
  EXPECT_TRUE(budget.Charge(1ns, 0ms, 100ms));
  EXPECT_TRUE(budget.over());
  EXPECT_EQ(0ms, budget.over_for()) << "from now on";
  EXPECT_FALSE(budget.Charge(0ms, 50ms, 100ms)) << "a nanosecond is missing";
  EXPECT_TRUE(budget.over());
  EXPECT_TRUE(budget.Charge(0ms, 1ns, 100ms));
  EXPECT_FALSE(budget.over());
  EXPECT_EQ(200ms, budget.over_for());
  EXPECT_EQ(1u, budget.times());
  EXPECT_TRUE(budget.Charge(1s, 0ms, 100ms));
  EXPECT_EQ(2u, budget.times());
  EXPECT_FALSE(budget.Charge(0ms, 150ms - 1ns, 100ms)) << "no more than a burst is owed";
  EXPECT_TRUE(budget.Charge(0ms, 1ns, 100ms));
}

TEST(OutsideBudgetTest, AtFirstNothingIsOver) {
  const OutsideBudget budget;
  EXPECT_FALSE(budget.over());
  EXPECT_EQ(0u, budget.times());
  EXPECT_EQ(0ms, budget.over_for());
}

}  // namespace
}  // namespace vgpud::daemon
