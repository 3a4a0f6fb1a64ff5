// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/load_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace vgpud::vfio {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{10s};
constexpr uint64_t kKiB = 1024;

// 100 KiB per second.
struct LoadQueueTest : testing::Test {
  static EventBudgets Budgets() {
    EventBudgets budgets{};
    budgets[static_cast<size_t>(GuardedEvent::kModuleKib)] = 100;
    return budgets;
  }
  Ns Serve(TimePoint now) {
    return queue.Serve(now, [this](uint32_t channel) { allowed.push_back(channel); });
  }
  // One that loads a module and has said how much it has read.
  void Load(uint32_t channel, uint64_t bytes) {
    ASSERT_TRUE(queue.Ask(channel));
    EXPECT_EQ(0ns, Serve(kStart));
    queue.Pay(channel, bytes, kStart);
    allowed.clear();
  }
  EventGuard guard{Budgets(), kStart, [] {}};
  LoadQueue queue{guard};
  std::vector<uint32_t> allowed;
};

TEST_F(LoadQueueTest, ASmallModuleIsLoadedAtOnce) {
  ASSERT_TRUE(queue.Ask(3));
  EXPECT_EQ(0ns, Serve(kStart));
  EXPECT_EQ((std::vector<uint32_t>{3}), allowed);
  queue.Pay(3, 1, kStart);
  EXPECT_EQ(1u, guard.count(GuardedEvent::kModuleKib));
}

TEST_F(LoadQueueTest, ALargeOneIsLoadedAtOnceAndTheNextWaitsUntilItIsPaidFor) {
  ASSERT_TRUE(queue.Ask(1));
  EXPECT_EQ(0ns, Serve(kStart));
  queue.Pay(1, 300 * kKiB, kStart);
  ASSERT_TRUE(queue.Ask(2));
  EXPECT_EQ(2s, Serve(kStart));
  EXPECT_EQ((std::vector<uint32_t>{1}), allowed);
  EXPECT_EQ(500ms, Serve(kStart + 1500ms));
  EXPECT_EQ(0ns, Serve(kStart + 2s));
  EXPECT_EQ((std::vector<uint32_t>{1, 2}), allowed);
  EXPECT_EQ(2u, guard.throttled(GuardedEvent::kModuleKib));
}

TEST_F(LoadQueueTest, ARestBeforeIsWorthOneSecondOnly) {
  const TimePoint late = kStart + 3600s;
  ASSERT_TRUE(queue.Ask(1));
  EXPECT_EQ(0ns, Serve(late));
  queue.Pay(1, 300 * kKiB, late);
  ASSERT_TRUE(queue.Ask(2));
  EXPECT_EQ(2s, Serve(late));
}

TEST_F(LoadQueueTest, EachChannelWaitsForOneAndThoseThatCameFirstAreServedFirst) {
  Load(9, 200 * kKiB);
  ASSERT_TRUE(queue.Ask(7));
  ASSERT_TRUE(queue.Ask(1));
  EXPECT_FALSE(queue.Ask(7));
  EXPECT_EQ(1s, Serve(kStart));
  EXPECT_EQ(0ns, Serve(kStart + 1010ms));
  EXPECT_EQ((std::vector<uint32_t>{7, 1}), allowed);
}

TEST_F(LoadQueueTest, WhoIsGoneIsForgotten) {
  Load(9, 200 * kKiB);
  ASSERT_TRUE(queue.Ask(2));
  queue.Forget(2);
  EXPECT_EQ(0ns, Serve(kStart));
  EXPECT_TRUE(allowed.empty());
}

TEST_F(LoadQueueTest, NobodyPaysForMoreThanOneModuleCanHave) {
  Load(1, UINT64_MAX);
  EXPECT_EQ(512 * kKiB, guard.count(GuardedEvent::kModuleKib));
}

TEST_F(LoadQueueTest, OthersWaitFourSecondsAtMostForWhatOneSaysThatItHasRead) {
  Load(1, UINT64_MAX);
  ASSERT_TRUE(queue.Ask(2));
  EXPECT_EQ(4s, Serve(kStart));
  EXPECT_EQ(0ns, Serve(kStart + 4s));
  EXPECT_EQ((std::vector<uint32_t>{2}), allowed);
}

TEST_F(LoadQueueTest, OnlyALoadThatWasAllowedIsPaidForAndOnce) {
  queue.Pay(1, 300 * kKiB, kStart);
  EXPECT_EQ(0u, guard.count(GuardedEvent::kModuleKib));
  Load(1, 300 * kKiB);
  queue.Pay(1, 300 * kKiB, kStart);
  EXPECT_EQ(300u, guard.count(GuardedEvent::kModuleKib));
  queue.Forget(1);
  queue.Pay(1, 300 * kKiB, kStart);
  EXPECT_EQ(300u, guard.count(GuardedEvent::kModuleKib));
}

}  // namespace
}  // namespace vgpud::vfio
