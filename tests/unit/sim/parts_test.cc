// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "tools/sim/distribution.h"
#include "tools/sim/load.h"

namespace vgpud::tools {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kMidnight{24h};

double MeanOf(const Distribution& distribution, int samples) {
  Random random(1, 2);
  double sum = 0;
  for (int i = 0; i < samples; ++i) sum += static_cast<double>(distribution.Sample(random).count());
  return sum / samples;
}

TEST(DistributionTest, SamplesHaveTheMeanThatIsSaid) {
  for (const auto& d : {Distribution::Fixed(5ms), Distribution::Uniform(1ms, 3ms), Distribution::Exponential(7ms),
                        Distribution::LogNormal(2ms, 5ms)})
    EXPECT_NEAR(1, MeanOf(d, 100'000) / static_cast<double>(d.Mean().count()), 0.01);
}

TEST(DistributionTest, OneSampleInAHundredExceedsTheP99) {
  const auto d = Distribution::LogNormal(2ms, 5ms);
  Random random(1, 2);
  int over_median = 0, over_p99 = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Ns sample = d.Sample(random);
    over_median += sample > 2ms;
    over_p99 += sample > 5ms;
  }
  EXPECT_NEAR(50'000, over_median, 1'000);
  EXPECT_NEAR(1'000, over_p99, 150);
}

TEST(DistributionTest, MeasuredLengthsComeBackEachAsOftenAsTheOthers) {
  const auto d = Distribution::Samples(std::vector<Ns>{7ms, 2ms, 2ms, 1ms});
  EXPECT_EQ(3ms, d.Mean());
  Random random(1, 2);
  std::map<Ns, int> seen;
  for (int i = 0; i < 100'000; ++i) ++seen[d.Sample(random)];
  EXPECT_EQ(3u, seen.size());
  EXPECT_NEAR(25'000, seen[1ms], 1'000);
  EXPECT_NEAR(50'000, seen[2ms], 1'000);
  EXPECT_NEAR(25'000, seen[7ms], 1'000);
}

TEST(LoadTest, BurstySleepsWhenItsWorkIsDone) {
  VfSpec spec;
  spec.arrival = Arrival::kBursty;
  spec.work = Distribution::Fixed(3ms);
  spec.sleep = Distribution::Fixed(10ms);
  Load load(spec, Random(1, 1), kMidnight);
  load.Start(kMidnight);
  EXPECT_FALSE(load.has_work());
  load.Fire();
  EXPECT_EQ(3ms, load.left());
  EXPECT_EQ(2ms, load.Consume(kMidnight + 20ms, 2ms));
  EXPECT_EQ(1ms, load.Consume(kMidnight + 30ms, 2ms));
  EXPECT_FALSE(load.has_work());
  EXPECT_EQ(kMidnight + 31ms + 10ms, load.next());
}

TEST(LoadTest, AlwaysEndsWithItsHoursAndIsBackTheNextDay) {
  VfSpec spec;
  spec.hours = Hours{20h, 6h};
  Load load(spec, Random(1, 1), kMidnight);
  load.Start(kMidnight + 12h);
  EXPECT_EQ(kMidnight + 20h, load.next());
  load.Fire();
  EXPECT_TRUE(load.has_work());
  EXPECT_EQ(kMidnight + 30h, load.next());
  load.Fire();
  EXPECT_FALSE(load.has_work());
  EXPECT_EQ(kMidnight + 44h, load.next());
}

TEST(LoadTest, ABurstAfterHoursWaitsForTheMorning) {
  VfSpec spec;
  spec.arrival = Arrival::kBursty;
  spec.work = Distribution::Fixed(2h);
  spec.sleep = Distribution::Fixed(1h);
  spec.hours = Hours{9h, 18h};
  Load load(spec, Random(1, 1), kMidnight);
  load.Start(kMidnight + 10h);
  load.Fire();
  load.Consume(kMidnight + 16h, 2h);
  EXPECT_EQ(kMidnight + 33h, load.next());
}

TEST(LoadTest, AKilledGuestLosesItsWorkAndComesBack) {
  VfSpec spec;
  spec.restart = Distribution::Fixed(1s);
  Load load(spec, Random(1, 1), kMidnight);
  load.Start(kMidnight);
  load.Fire();
  load.Kill(kMidnight + 5s);
  EXPECT_FALSE(load.has_work());
  EXPECT_EQ(kMidnight + 6s, load.next());
}

TEST(LoadTest, PoissonWorkComesAtItsRate) {
  VfSpec spec;
  spec.arrival = Arrival::kPoisson;
  spec.rate = 50;
  spec.work = Distribution::Fixed(1ms);
  Load load(spec, Random(1, 1), kMidnight);
  load.Start(kMidnight);
  while (load.next() < kMidnight + 1000s) load.Fire();
  EXPECT_NEAR(50.0, std::chrono::duration<double>(load.left()).count(), 1.5);
}

}  // namespace
}  // namespace vgpud::tools
