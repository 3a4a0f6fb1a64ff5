// SPDX-License-Identifier: Apache-2.0
#include "base/token_bucket.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{10s};

TEST(TokenBucketTest, TheReserveIsThereAtFirstAndThenTheRate) {
  TokenBucket bucket(10, 5, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(bucket.TryTake(1, kStart)) << i;
  EXPECT_FALSE(bucket.TryTake(1, kStart));
  EXPECT_FALSE(bucket.TryTake(1, kStart + 99ms));
  EXPECT_TRUE(bucket.TryTake(1, kStart + 100ms));
  EXPECT_FALSE(bucket.TryTake(1, kStart + 100ms));
}

TEST(TokenBucketTest, NoMoreThanTheReserveIsSavedUp) {
  TokenBucket bucket(10, 5, kStart);
  EXPECT_FALSE(bucket.TryTake(6, kStart + 1h));
  EXPECT_TRUE(bucket.TryTake(5, kStart + 1h));
  EXPECT_FALSE(bucket.TryTake(1, kStart + 1h));
}

TEST(TokenBucketTest, WhoTakesTooMuchWaitsUntilItIsRepaid) {
  TokenBucket bucket(10, 5, kStart);
  bucket.Take(5, kStart);
  EXPECT_EQ(0ns, bucket.Wait(kStart));
  bucket.Take(3, kStart);
  EXPECT_EQ(300ms, bucket.Wait(kStart));
  EXPECT_EQ(100ms, bucket.Wait(kStart + 200ms));
  EXPECT_EQ(0ns, bucket.Wait(kStart + 300ms));
}

TEST(TokenBucketTest, ZeroIsNoLimit) {
  TokenBucket bucket(0, 0, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.TryTake(1000, kStart));
  EXPECT_EQ(0ns, bucket.Wait(kStart));
}

TEST(TokenBucketTest, AClockThatSeemsToGoBackGivesNothing) {
  TokenBucket bucket(10, 1, kStart);
  EXPECT_TRUE(bucket.TryTake(1, kStart));
  EXPECT_FALSE(bucket.TryTake(1, kStart - 5s));
  EXPECT_FALSE(bucket.TryTake(1, kStart + 50ms));
}

TEST(TokenBucketTest, WhatWasTakenAndWhoHadToWaitIsCounted) {
  TokenBucket bucket(1000, 1000, kStart);
  for (int i = 0; i < 1010; ++i) bucket.Take(1, kStart);
  EXPECT_EQ(10ms, bucket.Wait(kStart));
  EXPECT_EQ(4ms, bucket.Wait(kStart + 6ms));
  EXPECT_EQ(0ns, bucket.Wait(kStart + 10ms));
  EXPECT_EQ(2u, bucket.throttled());
  EXPECT_EQ(14ms, bucket.throttled_time());
  EXPECT_EQ(1010u, bucket.count());
}

TEST(TokenBucketTest, ServedWithoutPauseItKeepsToItsRate) {
  TokenBucket bucket(500, 500, kStart);
  TimePoint now = kStart;
  uint64_t served = 0;
  for (; now < kStart + 10s; ++served) {
    bucket.Take(1, now);
    now += bucket.Wait(now);
  }
  EXPECT_NEAR(10 * 500 + 500, static_cast<double>(served), 2);
}

TEST(TokenBucketTest, OneThatIsLargerThanTheReserveIsOwedInFull) {
  TokenBucket bucket(100, 100, kStart);
  bucket.Take(1600, kStart);
  EXPECT_EQ(15s, bucket.Wait(kStart));
}

TEST(TokenBucketTest, NoDebtIsLongerThanTheLimit) {
  TokenBucket bucket(1, 1, kStart);
  for (int i = 0; i < 3; ++i) bucket.Take(UINT64_MAX, kStart);
  EXPECT_EQ(Ns{TokenBucket::kMostOwed}, bucket.Wait(kStart));
}

}  // namespace
}  // namespace vgpud
