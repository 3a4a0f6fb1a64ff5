#include "base/rate_limit.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{1'000'000'000'000}};

TEST(RateLimitTest, AfterARestAsManyAsInASecondComeAtOnce) {
  RateLimit limit(1000, kStart);
  for (int i = 0; i < 1000; ++i) limit.Count();
  EXPECT_EQ(0ns, limit.Wait(kStart));
}

TEST(RateLimitTest, WhatIsBeyondWaitsAndIsCounted) {
  RateLimit limit(1000, kStart);
  for (int i = 0; i < 1010; ++i) limit.Count();
  EXPECT_EQ(10ms, limit.Wait(kStart));
  EXPECT_EQ(4ms, limit.Wait(kStart + 6ms));
  EXPECT_EQ(0ns, limit.Wait(kStart + 10ms));
  EXPECT_EQ(2u, limit.throttled());
  EXPECT_EQ(14ms, limit.throttled_time());
  EXPECT_EQ(1010u, limit.count());
}

TEST(RateLimitTest, ServedWithoutPauseItKeepsToItsRate) {
  RateLimit limit(500, kStart);
  TimePoint now = kStart;
  uint64_t served = 0;
  for (; now < kStart + 10s; ++served) {
    limit.Count();
    now += limit.Wait(now);
  }
  EXPECT_NEAR(10 * 500 + 500, static_cast<double>(served), 2);
}

TEST(RateLimitTest, ZeroIsNoLimit) {
  RateLimit limit(0, kStart);
  for (int i = 0; i < 100'000; ++i) limit.Count();
  EXPECT_EQ(0ns, limit.Wait(kStart));
}

}  // namespace
}  // namespace vgpud
