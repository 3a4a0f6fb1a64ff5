// SPDX-License-Identifier: Apache-2.0
// An executor's share of its VF's VRAM: what it asks for, and what it makes of the answers.
#include "gpu/exec/memory/vram_share.h"

#include <gtest/gtest.h>

namespace vgpud::exec {
namespace {

constexpr uint64_t kChunk = 2 << 20;
using Answer = VramShare::Answer;

TEST(VramShare, AsksForWholeChunksAndTakesFromThemWithoutAsking) {
  VramShare share(16 * kChunk);
  EXPECT_EQ(share.Reserve(100), Answer::kAsk);
  EXPECT_EQ(share.TakeRequest(), std::optional<int64_t>(kChunk));
  EXPECT_EQ(share.TakeRequest(), std::nullopt);
  EXPECT_EQ(share.Reserve(100), Answer::kAsk);
  share.OnReply(kChunk, true, kChunk);
  EXPECT_EQ(share.Reserve(100), Answer::kGranted);
  share.Use(100);
  EXPECT_EQ(share.Reserve(kChunk - 100), Answer::kGranted);
  EXPECT_EQ(share.Reserve(kChunk - 99), Answer::kAsk);
}

// Where no whole chunk is left, the last byte may be.
TEST(VramShare, AsksForWhatIsMissingWhereAChunkIsRefused) {
  VramShare share(16 * kChunk);
  EXPECT_EQ(share.Reserve(kChunk), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(kChunk));
  share.OnReply(kChunk, true, kChunk);
  ASSERT_EQ(share.Reserve(kChunk), Answer::kGranted);
  share.Use(kChunk);
  EXPECT_EQ(share.Reserve(1), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(kChunk));
  share.OnReply(kChunk, false, kChunk);
  EXPECT_EQ(share.Reserve(1), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(1));
  share.OnReply(1, true, kChunk + 1);
  EXPECT_EQ(share.Reserve(1), Answer::kGranted);
  share.Use(1);
  EXPECT_EQ(share.Reserve(1), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(kChunk));
  share.OnReply(kChunk, false, kChunk + 1);
  ASSERT_EQ(share.Reserve(1), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(1));
  share.OnReply(1, false, kChunk + 1);
  EXPECT_EQ(share.Reserve(1), Answer::kRefused);
  EXPECT_EQ(share.Reserve(1), Answer::kAsk) << "a refusal is said once: others may have given back meanwhile";
}

TEST(VramShare, MoreThanTheQuotaIsNotEvenAskedFor) {
  VramShare share(kChunk);
  EXPECT_EQ(share.Reserve(kChunk + 1), Answer::kRefused);
  EXPECT_EQ(share.TakeRequest(), std::nullopt);
}

TEST(VramShare, WholeChunksThatAreNotNeededGoBack) {
  VramShare share(16 * kChunk);
  EXPECT_EQ(share.Reserve(3 * kChunk), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(3 * kChunk));
  share.OnReply(3 * kChunk, true, 3 * kChunk);
  ASSERT_EQ(share.Reserve(3 * kChunk), Answer::kGranted);
  share.Use(3 * kChunk);
  share.Return(kChunk - 1);
  EXPECT_EQ(share.TakeRequest(), std::nullopt);
  share.Return(1);
  EXPECT_EQ(share.TakeRequest(), std::optional<int64_t>(-int64_t{kChunk}));
  EXPECT_EQ(share.granted(), 2 * kChunk);
  EXPECT_EQ(share.TakeRequest(), std::nullopt) << "one question at a time";
  share.OnReply(-int64_t{kChunk}, true, 2 * kChunk);
  share.Return(~uint64_t{0});
  EXPECT_EQ(share.used(), 0u);
  EXPECT_EQ(share.TakeRequest(), std::optional<int64_t>(-2 * int64_t{kChunk}));
}

TEST(VramShare, SaysWhatTheVfHasLeftToIt) {
  VramShare share(16 * kChunk);
  EXPECT_EQ(share.Query(), std::nullopt);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(0));
  share.OnReply(0, true, 5 * kChunk);
  const auto info = share.Query();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->free, 11 * kChunk);
  EXPECT_EQ(info->total, 16 * kChunk);
  EXPECT_EQ(share.Query(), std::nullopt) << "the next question is asked anew";
}

TEST(VramShare, ItsQuotaMayChange) {
  VramShare share(kChunk);
  EXPECT_EQ(share.Reserve(3 * kChunk), Answer::kRefused);
  share.SetQuota(4 * kChunk);
  EXPECT_EQ(share.Reserve(3 * kChunk), Answer::kAsk);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(3 * int64_t{kChunk}));
  share.OnReply(3 * int64_t{kChunk}, true, 3 * kChunk);
  ASSERT_EQ(share.Reserve(3 * kChunk), Answer::kGranted);
  share.Use(3 * kChunk);
  share.SetQuota(3 * kChunk);
  EXPECT_EQ(share.Query(), std::nullopt);
  ASSERT_EQ(share.TakeRequest(), std::optional<int64_t>(0));
  share.OnReply(0, true, 3 * kChunk);
  const auto info = share.Query();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->free, 0u);
  EXPECT_EQ(info->total, 3 * kChunk);
}

}  // namespace
}  // namespace vgpud::exec
