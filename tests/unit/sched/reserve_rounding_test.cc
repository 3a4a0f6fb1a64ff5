// SPDX-License-Identifier: Apache-2.0
// Policy `reserve` to the nanosecond: a guarantee is rounded in favour of its VF, a limit against it, and a change of
// either keeps the GPU time that they stand for.
#include <gtest/gtest.h>

#include "sched/reserve.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000}};
// A nanosecond at this rate takes one and a millionth: quotients by it have remainders that are easy to choose.
constexpr uint32_t kAlmost = kWhole - 1;

struct Bed {
  ReservePolicy policy{PolicyOptions{}};
  std::vector<VfView> vfs;
  TimePoint now = kStart;

  VfView& Add(Ns slice, uint32_t guarantee, uint32_t limit) {
    VfView vf{.vf = VfId{static_cast<uint32_t>(vfs.size())}, .slice = slice, .runnable = true};
    vf.guarantee = guarantee;
    vf.limit = limit;
    vfs.push_back(vf);
    return vfs.back();
  }
  std::optional<uint32_t> Who() {
    const auto pick = policy.Next(vfs, now);
    return pick ? std::optional(Raw(pick->vf)) : std::nullopt;
  }
  // A turn of who is next.
  uint32_t Turn(Ns used) {
    const auto pick = policy.Next(vfs, now);
    EXPECT_TRUE(pick);
    now += used;
    policy.Ended(*pick, used, now);
    return Raw(pick->vf);
  }
  // How long nobody may run.
  Ns Wait() {
    EXPECT_FALSE(policy.Next(vfs, now));
    return policy.Wake() - now;
  }
};

TEST(ReserveRoundingTest, ALimitCostsTheNanosecondThatIsBegun) {
  struct Case {
    uint32_t limit;
    Ns slice;
    Ns time;  // in which it is earned
  };
  for (const Case& c : {Case{kAlmost, 1'000'000ns, 1'000'002ns},
                        {kAlmost, 999'999ns, 1'000'000ns},
                        {kAlmost, 999'998ns, 999'999ns},
                        {333'333, 2ms, 6'000'007ns},
                        {kWhole / 2, 2ms, 4ms}}) {
    Bed bed;
    bed.Add(c.slice, 0, c.limit);
    bed.Turn(c.slice);
    EXPECT_EQ(c.time - c.slice, bed.Wait()) << c.limit << " " << c.slice.count();
  }
}

TEST(ReserveRoundingTest, HoursAreCountedAsNanosecondsAre) {
  Bed bed;
  bed.Add(2ms, 0, kWhole / 4);
  bed.Turn(10h);
  EXPECT_EQ(30h, bed.Wait());
  Bed almost;
  almost.Add(1'000'000ns, 0, kAlmost);
  almost.Turn(999'999s);
  EXPECT_EQ(1s, almost.Wait());
}

TEST(ReserveRoundingTest, WhatIsNeverEarnedNeverRuns) {
  Bed bed;
  bed.Add(2ms, 0, 1'000);
  bed.Turn(24h * 365);
  EXPECT_FALSE(bed.Who());
  EXPECT_EQ(TimePoint::max(), bed.policy.Wake());
}

// VF 1 is owed its next slice again when it has had one: 999'998 ns at this rate take a part of a nanosecond more.
TEST(ReserveRoundingTest, AGuaranteeIsNotChargedANanosecondThatIsOnlyBegun) {
  Bed bed;
  bed.Add(2ms, 0, kWhole);
  bed.Add(999'998ns, kAlmost, kWhole);
  EXPECT_EQ(1u, bed.Turn(999'998ns));
  EXPECT_EQ(1u, bed.Who());
  Bed later;
  later.Add(2ms, 0, kWhole);
  later.Add(999'999ns, kAlmost, kWhole);
  EXPECT_EQ(1u, later.Turn(999'999ns));  // 1'000'000 ns
  EXPECT_EQ(0u, later.Who());
}

TEST(ReserveRoundingTest, WhoseSliceIsDueFirstGoesFirst) {
  Bed bed;
  bed.Add(2ms, 500'000, kWhole);  // due after 4 ms
  bed.Add(1ms, 333'334, kWhole);  // after less than 3 ms
  bed.Add(999'998ns, 100, kWhole);
  EXPECT_EQ(1u, bed.Turn(1ms));
  EXPECT_EQ(0u, bed.Turn(2ms));
  EXPECT_EQ(1u, bed.Turn(1ms));
}

TEST(ReserveRoundingTest, AChangedGuaranteeIsRoundedInFavourOfItsVf) {
  for (const bool reached : {false, true}) {
    Bed bed;
    bed.Add(2ms, 0, kWhole);
    bed.Add(999'997ns, kWhole / 2, kWhole);
    EXPECT_EQ(1u, bed.Turn(999'997ns));  // as far ahead
    bed.vfs[1].guarantee = kAlmost;      // half of that: 499'998.999...
    bed.policy.Show(bed.vfs, bed.now);
    bed.now += reached ? 499'998ns : 499'997ns;
    EXPECT_EQ(reached ? 1u : 0u, bed.Who());
  }
}

TEST(ReserveRoundingTest, ARaisedLimitIsRoundedAgainstItsVf) {
  Bed bed;
  bed.Add(1'000ns, 0, kWhole / 2);
  bed.Turn(2'002ns);  // the bucket is full 2 ns after it begins to fill, 2'000 ns later
  EXPECT_EQ(2ns + 2'000ns, bed.Wait());
  bed.vfs[0].limit = kAlmost;
  EXPECT_EQ(2ns + 1'001ns, bed.Wait());
}

TEST(ReserveRoundingTest, ALoweredLimitMakesTheSameTimeLonger) {
  Bed bed;
  bed.Add(600ns, 0, 600'000);
  bed.Turn(6us);
  EXPECT_EQ(3us + 1us, bed.Wait());
  bed.vfs[0].limit = 200'000;
  EXPECT_EQ(9us + 3us, bed.Wait());
}

TEST(ReserveRoundingTest, WhatTheBucketHoldsIsRoundedAgainstItsVf) {
  Bed bed;
  bed.Add(500'000ns, 0, kWhole / 2);
  bed.Turn(500'000ns);
  bed.now = kStart + 999'997ns;
  EXPECT_EQ(3ns, bed.Wait());
  bed.vfs[0].limit = kAlmost;  // holds 499'998 ns, needs 500'001 ns of time
  EXPECT_EQ(3ns, bed.Wait());
}

TEST(ReserveRoundingTest, AFirstLimitFindsAFullBucket) {
  Bed bed;
  bed.Add(2ms, 0, kWhole);
  bed.Turn(1ms);
  bed.vfs[0].limit = kWhole / 2;
  EXPECT_EQ(0u, bed.Who());
}

TEST(ReserveRoundingTest, WithoutALimitAnEmptyBucketIsNoReasonToWait) {
  Bed bed;
  bed.Add(2ms, 0, kWhole / 2);
  bed.Turn(10ms);
  EXPECT_EQ(10ms, bed.Wait());
  bed.vfs[0].limit = kWhole;
  EXPECT_EQ(0u, bed.Who());
}

TEST(ReserveRoundingTest, AGuaranteeThatIsGivenBackCountsAtOnce) {
  Bed bed;
  bed.Add(2ms, 0, kWhole);
  bed.Add(2ms, kWhole / 2, kWhole);
  const auto pick = bed.policy.Next(bed.vfs, bed.now);
  bed.vfs[1].guarantee = 0;
  bed.policy.Show(bed.vfs, bed.now);
  bed.now += 2ms;
  bed.policy.Ended(*pick, 2ms, bed.now);
  bed.vfs[1].guarantee = kWhole / 2;
  EXPECT_EQ(1u, bed.Who());
}

TEST(ReserveRoundingTest, ABucketFillsAtItsLastLimitWhileThereIsNone) {
  Bed bed;
  bed.Add(2ms, 0, kWhole / 2);
  bed.Turn(2ms);
  bed.vfs[0].limit = kWhole;
  EXPECT_EQ(0u, bed.Turn(1ms));  // in which, and in the 2 ms before, a half was filled
  bed.vfs[0].limit = kWhole / 4;
  EXPECT_EQ(8ms - 2 * 3ms, bed.Wait());
}

TEST(ReserveRoundingTest, ABurstIsSavedUpBesideASlice) {
  Bed bed;
  bed.Add(2ms, 0, kWhole / 4).burst = 3ms;
  for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(0u, bed.Turn(2ms));
  EXPECT_EQ(6ms, bed.Wait());  // of 5 ms and a quarter of 6 ms, 6 ms were used
}

// Behind by 52 ms, of which each turn of 2 ms at a half makes up for 2.
TEST(ReserveRoundingTest, WhatAGuaranteeIsBehindStaysTheSameTime) {
  Bed bed;
  bed.Add(70ms, 0, kWhole);
  bed.Add(2ms, kWhole / 10, kWhole);
  EXPECT_EQ(1u, bed.Turn(2ms));
  EXPECT_EQ(0u, bed.Turn(70ms));
  bed.vfs[1].guarantee = kWhole / 2;
  int turns = 0;
  while (turns < 100 && bed.Turn(2ms) == 1u) ++turns;
  EXPECT_EQ(27 + 2, turns);  // then one of the rest, and the one that became due in it
}

TEST(ReserveRoundingTest, NewOptionsCountForEveryVf) {
  Bed bed;
  bed.Add(0ms, 0, kWhole).runnable = false;
  bed.Add(0ms, 0, kWhole / 2);
  EXPECT_EQ(1u, bed.Turn(2ms));
  EXPECT_EQ(2ms, bed.Wait());
  PolicyOptions options;
  options.base_slice = 1500us;
  bed.policy.SetOptions(options, bed.now);
  EXPECT_EQ(1ms, bed.policy.Wake() - bed.now);
}

TEST(ReserveRoundingTest, TimeBeforeZeroIsTimeToo) {
  for (const TimePoint start : {TimePoint{-24h}, TimePoint{0ns}, TimePoint::min() + 1s}) {
    Bed bed;
    bed.now = start;
    bed.Add(2ms, 0, kWhole / 2);
    EXPECT_EQ(0u, bed.Turn(2ms));
    EXPECT_EQ(2ms, bed.Wait());
  }
}

}  // namespace
}  // namespace vgpud
