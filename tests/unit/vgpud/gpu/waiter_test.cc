// SPDX-License-Identifier: Apache-2.0
// How the scheduler thread waits. Each test in a thread of its own: what it prepares is its own thread's.
#include "vgpud/gpu/waiter.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

void InAThread(const std::function<void()>& what) { std::thread(what).join(); }

TEST(WaiterTest, TheSpinIsTheOneThatWasGivenOrPartOfTheTurn) {
  const Waiter fixed({.spin = 7us});
  EXPECT_EQ(7us, fixed.Spin(1s));
  const Waiter tenth(Waiter::Options{});
  EXPECT_EQ(10us, tenth.Spin(100us));
  EXPECT_EQ(50us, tenth.Spin(1ms)) << "as long as nothing is known";
  const Waiter quarter({.spin = {}, .max_spin_percent = 25});
  EXPECT_EQ(25us, quarter.Spin(100us));
  EXPECT_EQ(-1, tenth.cpu());
  EXPECT_FALSE(tenth.fifo());
}

TEST(WaiterTest, AnOrdinaryThreadGetsWhatItMayHave) {
  InAThread([] {
    cpu_set_t before, after;
    ASSERT_EQ(0, ::sched_getaffinity(0, sizeof before, &before));
    Waiter waiter({.spin = {}, .fifo_priority = 0});
    waiter.Prepare();
    EXPECT_FALSE(waiter.fifo());
    EXPECT_EQ(SCHED_OTHER, ::sched_getscheduler(0));
    EXPECT_EQ(1, ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    const int nice = ::getpriority(PRIO_PROCESS, 0);
    EXPECT_TRUE(nice == -20 || ::geteuid() != 0) << nice;
    ASSERT_EQ(0, ::sched_getaffinity(0, sizeof after, &after));
    if (CPU_COUNT(&before) < 2) {
      EXPECT_EQ(-1, waiter.cpu());
      return;
    }
    int first = 0;
    while (!CPU_ISSET(static_cast<size_t>(first), &before)) ++first;
    EXPECT_EQ(first, waiter.cpu());
    EXPECT_EQ(1, CPU_COUNT(&after));
    EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(first), &after));
  });
}

TEST(WaiterTest, WithOneProcessorThereIsNoChoice) {
  InAThread([] {
    cpu_set_t allowed, one;
    ASSERT_EQ(0, ::sched_getaffinity(0, sizeof allowed, &allowed));
    size_t first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(0, ::sched_setaffinity(0, sizeof one, &one));
    Waiter waiter({.spin = {}, .fifo_priority = 0});
    waiter.Prepare();
    EXPECT_EQ(-1, waiter.cpu());
  });
}

TEST(WaiterTest, FifoIsTakenWhereItIsAllowed) {
  InAThread([] {
    Waiter waiter({.spin = {}, .fifo_priority = 1});
    waiter.Prepare();
    sched_param param{};
    ASSERT_EQ(0, ::sched_getparam(0, &param));
    if (!waiter.fifo()) {
      EXPECT_EQ(SCHED_OTHER, ::sched_getscheduler(0));
      return;
    }
    EXPECT_EQ(SCHED_FIFO | SCHED_RESET_ON_FORK, ::sched_getscheduler(0));
    EXPECT_EQ(1, param.sched_priority);
  });
}

TEST(WaiterTest, ADeadlineIsWaitedForAndTheWaitIsCounted) {
  InAThread([] {
    Waiter waiter({.spin = 1us});
    std::atomic<uint32_t> word{0};
    const FutexWord bells[] = {{&word, 0}};
    const TimePoint deadline = Now() + 2ms;
    int waits = 0;
    while (Now() < deadline) {
      EXPECT_EQ(std::nullopt, waiter.UntilDeadline(deadline, 2ms, bells));
      ++waits;
    }
    EXPECT_LE(waits, 3);
    EXPECT_GE(waiter.wake_ups().late().count(), 1u);
  });
}

TEST(WaiterTest, ShortlyBeforeADeadlineItDoesNotSleep) {
  InAThread([] {
    Waiter waiter({.spin = 10s});
    std::atomic<uint32_t> word{0};
    const FutexWord bells[] = {{&word, 0}};
    const TimePoint deadline = Now() + 200us;
    EXPECT_EQ(std::nullopt, waiter.UntilDeadline(deadline, 1s, bells));
    EXPECT_GE(Now(), deadline);
    EXPECT_EQ(0u, waiter.wake_ups().late().count());
  });
}

// A host whose CPUs wake up late: where the thread may keep one awake at nobody's cost, it looks for the last moment
// only.
TEST(WaiterTest, ShortlyBeforeADeadlineItSleepsOnACpuThatIsKeptAwake) {
  InAThread([] {
    WakeUps late;
    for (int i = 0; i < 100; ++i) late.Add(50ms);
    Waiter waiter({.spin = {}, .fifo_priority = 1}, late);
    waiter.Prepare();
    ASSERT_GE(waiter.Spin(1s), 50ms);
    std::atomic<uint32_t> word{0};
    const FutexWord bells[] = {{&word, 0}};
    const TimePoint deadline = Now() + 45ms;
    int waits = 0;
    for (; Now() < deadline; ++waits) EXPECT_EQ(std::nullopt, waiter.UntilDeadline(deadline, 1s, bells));
    const bool keeps = waiter.fifo() && waiter.cpu() >= 0;
    EXPECT_EQ(keeps ? 1u : 0u, waiter.awake_wake_ups().late().count());
    EXPECT_LE(waits, 2) << "the last sleep may end late";
    EXPECT_EQ(100u, waiter.wake_ups().late().count());
  });
}

TEST(WaiterTest, ABellThatHasRungSinceItWasSeenEndsTheWait) {
  InAThread([] {
    Waiter waiter({.spin = 1us});
    std::atomic<uint32_t> word{1};
    const FutexWord bells[] = {{&word, 0}};
    const TimePoint start = Now();
    (void)waiter.UntilEvent(TimePoint::max(), bells);
    (void)waiter.UntilEvent(start + 1h, bells);
    (void)waiter.UntilDeadline(start + 1h, 1s, bells);
    EXPECT_LT(Now() - start, 1h);
    EXPECT_EQ(0u, waiter.wake_ups().late().count()) << "it was not the time that woke it";
  });
}

TEST(WaiterTest, AMomentThatIsOverIsNoLateWait) {
  InAThread([] {
    Waiter waiter({.spin = 1us});
    std::atomic<uint32_t> word{0};
    const FutexWord bells[] = {{&word, 0}};
    EXPECT_EQ(std::nullopt, waiter.UntilEvent(Now() - 1ms, bells));
    EXPECT_EQ(0u, waiter.wake_ups().late().count());
    waiter.Rest();
  });
}

// Without real-time priority no other thread may keep the processor awake: it looks again and again itself.
TEST(WaiterTest, KeptAwakeWithoutFifoItDoesNotSleep) {
  InAThread([] {
    Waiter waiter({.spin = 1us, .keep_cpu_awake = true, .fifo_priority = 0});
    waiter.Prepare();
    std::atomic<uint32_t> word{0};
    const FutexWord bells[] = {{&word, 0}};
    const TimePoint start = Now();
    EXPECT_EQ(std::nullopt, waiter.UntilDeadline(start + 1h, 1s, bells));
    EXPECT_LT(Now() - start, 1h);
  });
}

}  // namespace
}  // namespace vgpud::daemon
