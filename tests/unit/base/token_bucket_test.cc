#include "base/token_bucket.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vgpud
