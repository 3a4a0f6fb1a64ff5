// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/worker.h"

#include <gtest/gtest.h>

#include <future>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

struct Bed {
  UniqueFd event = *MakeEventFd();
  TaskQueue replies{event.get()};
};

TEST(WorkerTest, TasksRunInOrderAndWhatComesAfterRunsHere) {
  Bed bed;
  std::vector<int> order, after;
  {
    Worker worker("t", 10, bed.replies);
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(worker.Post([&order, i] { order.push_back(i); }, [&after, i] { after.push_back(i); }));
  }
  EXPECT_EQ((std::vector<int>{0, 1, 2}), order);
  EXPECT_TRUE(after.empty());
  bed.replies.RunAll();
  EXPECT_EQ((std::vector<int>{0, 1, 2}), after);
}

TEST(WorkerTest, NoMoreTasksWaitThanItMayHave) {
  Bed bed;
  std::promise<void> go, begun;
  Worker worker("t", 2, bed.replies);
  ASSERT_TRUE(worker.Post([&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(worker.Post([] {}));
  EXPECT_TRUE(worker.Post([] {}));
  EXPECT_FALSE(worker.Post([] { ADD_FAILURE() << "it was refused"; }));
  EXPECT_EQ(3u, worker.waiting());
  EXPECT_GT(worker.busy(Now() + 1s), 0ns);
  go.set_value();
  EXPECT_TRUE(worker.Leave(10s));
}

TEST(WorkerTest, OneThatHangsIsLeftBehindAndNotHeardOf) {
  Bed bed;
  auto go = std::make_shared<std::promise<void>>();
  auto over = std::make_shared<std::promise<void>>();
  std::promise<void> begun;
  {
    Worker worker("t", 2, bed.replies);
    ASSERT_TRUE(worker.Post(
        [go, over, &begun] {
          begun.set_value();
          go->get_future().wait();
          over->set_value();
        },
        [] { ADD_FAILURE() << "heard of"; }));
    begun.get_future().wait();
    EXPECT_FALSE(worker.Leave(1ms));
    EXPECT_FALSE(worker.Post([] {}));
  }
  go->set_value();
  over->get_future().wait();
  bed.replies.RunAll();
}

TEST(WorkerTest, AtRestNothingWaitsAndNothingIsBusy) {
  Bed bed;
  Worker worker("t", 2, bed.replies);
  EXPECT_EQ(0u, worker.waiting());
  EXPECT_EQ(0ns, worker.busy(Now() + 1h));
  ASSERT_TRUE(worker.Post([] {}, [] {}));
  EXPECT_TRUE(worker.Leave(1h));
  EXPECT_EQ(0u, worker.waiting());
  EXPECT_EQ(0ns, worker.busy(Now() + 1h));
  EXPECT_TRUE(worker.Post([] {})) << "it was not left behind";
  EXPECT_TRUE(worker.Leave(1h));
  EXPECT_TRUE(worker.Leave(0ns)) << "there is nothing to wait for";
}

TEST(WorkerTest, OneThatWasLeftBehindIsLeftForGood) {
  Bed bed;
  auto go = std::make_shared<std::promise<void>>();
  std::promise<void> begun;
  Worker worker("t", 2, bed.replies);
  ASSERT_TRUE(worker.Post([go, &begun] {
    begun.set_value();
    go->get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_FALSE(worker.Leave(1ms));
  EXPECT_FALSE(worker.Leave(1ms));
  go->set_value();
}

TEST(TaskQueueTest, WhatIsPostedMeanwhileWaitsForTheNextTime) {
  int woken = 0;
  TaskQueue queue([&] { ++woken; });
  std::vector<int> order;
  EXPECT_TRUE(queue.empty());
  queue.RunAll();
  for (int i = 0; i < 2; ++i)
    queue.Post([&, i] {
      order.push_back(i);
      queue.Post([&, i] { order.push_back(10 + i); });
    });
  EXPECT_EQ(2, woken);
  EXPECT_FALSE(queue.empty());
  queue.RunAll();
  EXPECT_EQ((std::vector<int>{0, 1}), order);
  EXPECT_FALSE(queue.empty());
  queue.RunAll();
  EXPECT_EQ((std::vector<int>{0, 1, 10, 11}), order);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace vgpud::daemon
