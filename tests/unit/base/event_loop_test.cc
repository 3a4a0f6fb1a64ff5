// SPDX-License-Identifier: Apache-2.0
#include "base/event_loop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "base/slice_page.h"

namespace vgpud {
namespace {

TEST(EventLoopTest, ReadableThenPostThenStop) {
  EventLoop loop;
  const UniqueFd fd = *MakeEventFd();
  std::vector<int> order;
  auto watch = loop.OnReadable(fd.get(), [&] {
    DrainEventFd(fd.get());
    order.push_back(1);
    loop.Post([&] {
      order.push_back(2);
      loop.Stop();
    });
  });
  SignalEventFd(fd.get());
  loop.Run();
  EXPECT_EQ((std::vector<int>{1, 2}), order);
}

TEST(EventLoopTest, TimerIsOneShotAndRearms) {
  EventLoop loop;
  int fired = 0;
  EventLoop::WatchPtr timer;
  timer = loop.Timer([&] {
    if (++fired == 2)
      loop.Stop();
    else
      timer->Arm(std::chrono::microseconds{1});
  });
  timer->Arm(std::chrono::microseconds{1});
  loop.Run();
  EXPECT_EQ(2, fired);
}

struct OwnEndCase {
  const char* name;
  // Makes a watch that calls `callback` as soon as the loop runs.
  EventLoop::WatchPtr (*make)(EventLoop&, const UniqueFd&, std::function<void()> callback);
};
constexpr OwnEndCase kOwnEnds[] = {
    {"readable",
     [](EventLoop& loop, const UniqueFd& fd, std::function<void()> callback) {
       SignalEventFd(fd.get());
       return loop.OnReadable(fd.get(), std::move(callback));
     }},
    {"writable", [](EventLoop& loop, const UniqueFd& fd,
                    std::function<void()> callback) { return loop.OnWritable(fd.get(), std::move(callback)); }},
    {"timer",
     [](EventLoop& loop, const UniqueFd&, std::function<void()> callback) {
       auto watch = loop.Timer(std::move(callback));
       watch->Arm(std::chrono::nanoseconds{0});
       return watch;
     }},
    {"signal",
     [](EventLoop& loop, const UniqueFd&, std::function<void()> callback) {
       auto watch = loop.OnSignal(SIGUSR1, std::move(callback));
       ::raise(SIGUSR1);
       return watch;
     }},
};

TEST(EventLoopTest, AWatchMayBeDestroyedInItsOwnCallback) {
  for (const OwnEndCase& each : kOwnEnds) {
    EventLoop loop;
    const UniqueFd fd = *MakeEventFd();
    EventLoop::WatchPtr watch;
    auto held = std::make_shared<int>(7);
    const std::weak_ptr<int> observed = held;
    int calls = 0, seen = 0;
    watch = each.make(loop, fd, [&, held = std::move(held)] {
      ++calls;
      watch.reset();
      EXPECT_FALSE(observed.expired()) << each.name << ": what the callback holds ended under it";
      seen = observed.expired() ? 0 : *held;
      loop.Post([&] { loop.Stop(); });
    });
    loop.Run();
    EXPECT_EQ(1, calls) << each.name;
    EXPECT_EQ(7, seen) << each.name;
    EXPECT_TRUE(observed.expired()) << each.name;
  }
}

TEST(EventLoopTest, WhatIsPostedAfterTheEndIsDroppedUnrun) {
  const auto held = std::make_shared<int>(1);
  bool ran = false;
  const UniqueFd fd = *MakeEventFd();
  {
    EventLoop loop;
    auto watch = std::make_shared<EventLoop::WatchPtr>(loop.OnReadable(fd.get(), [] {}));
    loop.Post([&ran, held, watch] { ran = true; });
    watch.reset();
    EXPECT_EQ(2, held.use_count());
  }
  EXPECT_EQ(1, held.use_count());
  EXPECT_FALSE(ran);
}

TEST(LogLimiterTest, CountsWhatItDrops) {
  LogLimiter limiter{2};
  unsigned suppressed = 99;
  int allowed = 0;
  for (int i = 0; i < 1000; ++i) allowed += limiter.Allow(&suppressed) ? 1 : 0;
  EXPECT_GE(allowed, 2);
  EXPECT_LE(allowed, 6);  // the second may turn over while the loop runs
}

TEST(SlicePageTest, RunBitIsTheGrant) {
  GrantPage page;
  EXPECT_FALSE(IsGranted(page));
  page.grant = 2 | GrantPage::kRun;
  EXPECT_TRUE(IsGranted(page));
  page.grant = 2;
  EXPECT_FALSE(IsGranted(page));
}

}  // namespace
}  // namespace vgpud
