// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/bounded_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/time.h>
#include <unistd.h>

#include <limits>

#include "base/fd.h"

namespace vgpud::vfio {
namespace {

uint64_t Counter(const UniqueFd& event) {
  uint64_t value = 0;
  EXPECT_EQ(ssize_t{sizeof value}, ::read(event.get(), &value, sizeof value));
  return value;
}

void Fill(const UniqueFd& event) {
  const uint64_t full = std::numeric_limits<uint64_t>::max() - 1;
  ASSERT_EQ(ssize_t{sizeof full}, ::write(event.get(), &full, sizeof full));
}

bool TimerRuns() {
  itimerval timer{};
  EXPECT_EQ(0, ::getitimer(ITIMER_REAL, &timer));
  return timerisset(&timer.it_value);
}

TEST(BoundedWriteTest, EachSignalCountsOnce) {
  const UniqueFd event = *MakeEventFd();
  EXPECT_TRUE(SignalWithoutWaiting(event.get()));
  EXPECT_EQ(1u, Counter(event));
  EXPECT_TRUE(SignalWithoutWaiting(event.get()));
  EXPECT_TRUE(SignalWithoutWaiting(event.get()));
  EXPECT_EQ(2u, Counter(event));
}

TEST(BoundedWriteTest, AFullCounterHasSaidItAllUnlessItMakesUsWait) {
  const UniqueFd event = *MakeEventFd();
  Fill(event);
  EXPECT_TRUE(SignalWithoutWaiting(event.get()));
  ASSERT_EQ(0, ::fcntl(event.get(), F_SETFL, 0));
  EXPECT_FALSE(SignalWithoutWaiting(event.get()));
  ASSERT_EQ(0, ::fcntl(event.get(), F_SETFL, O_NONBLOCK));
  EXPECT_TRUE(SignalWithoutWaiting(event.get())) << "what was before does not count";
}

// Costs a program that signals seldom no wake-ups, and interrupts the next write that blocks as well.
TEST(BoundedWriteTest, TheTimerTicksUntilNothingIsWritten) {
  const UniqueFd event = *MakeEventFd();
  for (int round = 0; round < 3; ++round) {
    while (TimerRuns()) ::sched_yield();
    EXPECT_TRUE(SignalWithoutWaiting(event.get()));
    itimerval timer{};
    ASSERT_EQ(0, ::getitimer(ITIMER_REAL, &timer));
    EXPECT_EQ(0, timer.it_interval.tv_sec);
    EXPECT_EQ(std::chrono::microseconds{kMostWriteWait}.count(), timer.it_interval.tv_usec);
  }
  EXPECT_EQ(std::chrono::milliseconds{10}, kMostWriteWait);
}

}  // namespace
}  // namespace vgpud::vfio
