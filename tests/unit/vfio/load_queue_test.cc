#include "vfio/load_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace vgpud {
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
  EventGuard guard{Budgets(), kStart, [] {}};
  LoadQueue queue{guard};
  std::vector<uint32_t> allowed;
};

TEST_F(LoadQueueTest, ASmallModuleIsLoadedAtOnce) {
  ASSERT_TRUE(queue.Ask(3, kKiB));
  EXPECT_EQ(0ns, Serve(kStart));
  EXPECT_EQ((std::vector<uint32_t>{3}), allowed);
  EXPECT_EQ(1u, guard.count(GuardedEvent::kModuleKib));
}

TEST_F(LoadQueueTest, ALargeOneIsLoadedAtOnceAndTheNextWaitsUntilItIsPaidFor) {
  ASSERT_TRUE(queue.Ask(1, 300 * kKiB));
  ASSERT_TRUE(queue.Ask(2, kKiB));
  EXPECT_EQ(2s, Serve(kStart));
  EXPECT_EQ((std::vector<uint32_t>{1}), allowed);
  EXPECT_EQ(500ms, Serve(kStart + 1500ms));
  EXPECT_EQ(0ns, Serve(kStart + 2s));
  EXPECT_EQ((std::vector<uint32_t>{1, 2}), allowed);
  EXPECT_EQ(2u, guard.throttled(GuardedEvent::kModuleKib));
}

TEST_F(LoadQueueTest, EachChannelWaitsForOneAndThoseThatCameFirstAreServedFirst) {
  ASSERT_TRUE(queue.Ask(1, 200 * kKiB));
  EXPECT_EQ(0ns, Serve(kStart));
  ASSERT_TRUE(queue.Ask(7, 50 * kKiB));
  ASSERT_TRUE(queue.Ask(1, 50 * kKiB));
  EXPECT_FALSE(queue.Ask(7, 1));
  EXPECT_EQ(1s, Serve(kStart));
  EXPECT_EQ(490ms, Serve(kStart + 1010ms));
  EXPECT_EQ((std::vector<uint32_t>{1, 7}), allowed);
}

TEST_F(LoadQueueTest, WhoIsGoneIsForgotten) {
  ASSERT_TRUE(queue.Ask(1, 200 * kKiB));
  EXPECT_EQ(0ns, Serve(kStart));
  ASSERT_TRUE(queue.Ask(2, kKiB));
  queue.Forget(2);
  EXPECT_EQ(0ns, Serve(kStart));
  EXPECT_EQ((std::vector<uint32_t>{1}), allowed);
}

TEST_F(LoadQueueTest, NoImageIsLargerThanTheLargest) {
  ASSERT_TRUE(queue.Ask(1, UINT64_MAX));
  EXPECT_EQ(0ns, Serve(kStart));
  EXPECT_EQ(LoadQueue::kMostBytes / kKiB, guard.count(GuardedEvent::kModuleKib));
}

}  // namespace
}  // namespace vgpud
