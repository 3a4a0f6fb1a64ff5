// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/wake_ups.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

void Add(WakeUps& wake_ups, int times, Ns late) {
  for (int i = 0; i < times; ++i) wake_ups.Add(late);
}

TEST(WakeUpsTest, BeforeTheFirstWaitItAssumesWhatIsUsual) {
  const WakeUps wake_ups;
  EXPECT_EQ(WakeUps::kAtFirst, wake_ups.Lead(1ms));
  EXPECT_EQ(10us, wake_ups.Lead(10us));
}

TEST(WakeUpsTest, NinetyNineInAHundredAreCovered) {
  WakeUps wake_ups;
  Add(wake_ups, 500, 12us);
  Add(wake_ups, 492, 70us);
  Add(wake_ups, 8, 3ms);
  EXPECT_GE(wake_ups.Lead(1s), 70us);
  EXPECT_LE(wake_ups.Lead(1s), 70us * 5 / 4);
}

TEST(WakeUpsTest, ItIsNoLongerThanAllowedAndNoLongerThanWorthIt) {
  WakeUps wake_ups;
  Add(wake_ups, 500, 12us);
  Add(wake_ups, 500, 3ms);
  EXPECT_GE(wake_ups.Lead(200us), 12us);
  EXPECT_LE(wake_ups.Lead(200us), 15us) << "nothing between 15 us and 200 us is gained by spinning";
  EXPECT_GE(wake_ups.Lead(4ms), 3ms);
  EXPECT_EQ(0us, wake_ups.Lead(0us));
}

TEST(WakeUpsTest, WhatWasLongAgoIsForgotten) {
  WakeUps wake_ups;
  Add(wake_ups, 10'000, 3ms);
  Add(wake_ups, 20'000, 12us);
  EXPECT_LE(wake_ups.Lead(1s), 15us);
  EXPECT_EQ(30'000u, wake_ups.late().count()) << "but not in the figures";
}

TEST(WakeUpsTest, AWaitThatReturnedEarlyWasNotLate) {
  WakeUps wake_ups;
  Add(wake_ups, 10, -5us);
  EXPECT_LE(wake_ups.Lead(1s), 256ns);
}

Ns EdgeOf(Ns late) {
  return Ns{
      static_cast<int64_t>(LatencyHistogram::UpperNs(LatencyHistogram::Bucket(static_cast<uint64_t>(late.count()))))};
}

TEST(WakeUpsTest, OneInAHundredMayBeLaterTwoMayNot) {
  WakeUps wake_ups;
  Add(wake_ups, 99, 12us);
  Add(wake_ups, 1, 3ms);
  EXPECT_EQ(EdgeOf(12us), wake_ups.Lead(1s));
  Add(wake_ups, 1, 3ms);
  EXPECT_EQ(EdgeOf(3ms), wake_ups.Lead(1s));
}

TEST(WakeUpsTest, AsManyAreCoveredAsWereAskedFor) {
  WakeUps wake_ups;
  Add(wake_ups, 90, 12us);
  Add(wake_ups, 10, 3ms);
  EXPECT_EQ(EdgeOf(12us), wake_ups.Lead(1s, 90));
  EXPECT_EQ(EdgeOf(3ms), wake_ups.Lead(1s, 91));
}

TEST(WakeUpsTest, AnEdgeThatIsJustAllowedIsTaken) {
  WakeUps wake_ups;
  Add(wake_ups, 10, 12us);
  EXPECT_EQ(EdgeOf(12us), wake_ups.Lead(EdgeOf(12us)));
  EXPECT_EQ(0ns, wake_ups.Lead(EdgeOf(12us) - 1ns));
  EXPECT_EQ(50us, Ns{WakeUps::kAtFirst});
}

// At each 2048 waits that are remembered, those so far count half.
TEST(WakeUpsTest, OldWaitsCountHalfAsMuchAgainAndAgain) {
  WakeUps wake_ups;
  Add(wake_ups, 2048, 3ms);
  Add(wake_ups, 6 * 1024 + 575, 12us);  // 16 of the old ones, 1008 + 575 of the new
  EXPECT_EQ(EdgeOf(3ms), wake_ups.Lead(1s));
  Add(wake_ups, 1, 12us);
  EXPECT_EQ(EdgeOf(12us), wake_ups.Lead(1s));
}

}  // namespace
}  // namespace vgpud::daemon
