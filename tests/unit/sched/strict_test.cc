// SPDX-License-Identifier: Apache-2.0
#include "sched/strict.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{};

VfView View(uint32_t vf, bool runnable = true, uint32_t weight = 100, Ns slice = Ns{0}) {
  return {VfId{vf}, weight, slice, runnable};
}
Policy::Pick Pick(uint32_t vf, Ns slice) { return {VfId{vf}, slice}; }

TEST(StrictTest, TurnsGoRoundInVfOrder) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0), View(3), View(7)};
  for (const uint32_t expected : {0u, 3u, 7u, 0u, 3u}) EXPECT_EQ(Pick(expected, 2ms), policy.Next(vfs, kNow));
  EXPECT_EQ(1u, policy.round());
}

TEST(StrictTest, SliceIsFixedOrByWeight) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0, true, 300), View(1, true, 50), View(2, true, 300, 700us)};
  EXPECT_EQ(Pick(0, 6ms), policy.Next(vfs, kNow));
  EXPECT_EQ(Pick(1, 1ms), policy.Next(vfs, kNow));
  EXPECT_EQ(Pick(2, 700us), policy.Next(vfs, kNow));
}

TEST(StrictTest, IdleVfsArePassedOver) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0, false), View(1), View(2, false)};
  EXPECT_EQ(Pick(1, 2ms), policy.Next(vfs, kNow));
  EXPECT_EQ(Pick(1, 2ms), policy.Next(vfs, kNow));
  EXPECT_EQ(std::nullopt, policy.Next(std::vector<VfView>{View(0, false)}, kNow));
  EXPECT_EQ(std::nullopt, policy.Next({}, kNow));
}

TEST(StrictTest, OverrunShortensTheNextSlice) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0), View(1)};
  policy.Ended(*policy.Next(vfs, kNow), 2500us, kNow);
  EXPECT_EQ(500us, policy.Debt(VfId{0}));
  EXPECT_EQ(Pick(1, 2ms), policy.Next(vfs, kNow));
  EXPECT_EQ(Pick(0, 1500us), policy.Next(vfs, kNow));
  EXPECT_EQ(0ns, policy.Debt(VfId{0}));
}

TEST(StrictTest, DebtOfASliceCostsATurn) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0), View(1)};
  policy.Ended(*policy.Next(vfs, kNow), 7ms, kNow);  // owes 5 ms
  for (const auto& expected : {Pick(1, 2ms), Pick(1, 2ms), Pick(1, 2ms), Pick(0, 1ms), Pick(1, 2ms), Pick(0, 2ms)})
    EXPECT_EQ(expected, policy.Next(vfs, kNow));
}

TEST(StrictTest, AloneAVfRunsAtOnceWhateverItOwes) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0)};
  policy.Ended(*policy.Next(vfs, kNow), 1002ms + 300us, kNow);
  EXPECT_EQ(Pick(0, 1700us), policy.Next(vfs, kNow));
}

TEST(StrictTest, DebtOutlivesIdleness) {
  StrictPolicy policy{2ms};
  policy.Ended(*policy.Next(std::vector{View(0), View(1)}, kNow), 3ms, kNow);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Pick(1, 2ms), policy.Next(std::vector{View(0, false), View(1)}, kNow));
  EXPECT_EQ(Pick(0, 1ms), policy.Next(std::vector{View(0), View(1)}, kNow));
}

TEST(StrictTest, UnusedTimeIsNoCredit) {
  StrictPolicy policy{2ms};
  const std::vector<VfView> vfs = {View(0), View(1)};
  policy.Ended(*policy.Next(vfs, kNow), 1us, kNow);
  policy.Next(vfs, kNow);
  EXPECT_EQ(Pick(0, 2ms), policy.Next(vfs, kNow));
}

TEST(StrictTest, ANewVfOfTheSameNumberOwesNothing) {
  StrictPolicy policy{2ms};
  policy.Ended(*policy.Next(std::vector{View(0), View(1)}, kNow), 9ms, kNow);
  policy.Forget(VfId{0});
  EXPECT_EQ(0ns, policy.Debt(VfId{0}));
}

TEST(StrictTest, TheWheelGoesOnBehindAVfThatLeft) {
  StrictPolicy policy{2ms};
  EXPECT_EQ(Pick(0, 2ms), policy.Next(std::vector{View(0), View(1), View(2)}, kNow));
  EXPECT_EQ(Pick(1, 2ms), policy.Next(std::vector{View(0), View(1), View(2)}, kNow));
  EXPECT_EQ(Pick(2, 2ms), policy.Next(std::vector{View(0), View(2)}, kNow));
  EXPECT_EQ(Pick(0, 2ms), policy.Next(std::vector{View(0), View(2)}, kNow));
}

}  // namespace
}  // namespace vgpud
