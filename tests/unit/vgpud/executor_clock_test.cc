#include "vgpud/executor_clock.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <future>
#include <thread>

#include "base/exec_link.h"

namespace vgpud {
namespace {

constexpr uint64_t kBurnNs = 20'000'000;

uint64_t ThreadCpuNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void Burn() {
  const uint64_t until = ThreadCpuNs() + kBurnNs;
  while (ThreadCpuNs() < until) {
  }
}

TEST(ExecutorClockTest, CountsTheGpuThreadAndNoOther) {
  std::promise<void> named, burn, burnt, end;
  std::thread gpu([&] {
    ::prctl(PR_SET_NAME, exec_link::kGpuThreadName);
    named.set_value();
    burn.get_future().wait();
    Burn();
    burnt.set_value();
    end.get_future().wait();
  });
  named.get_future().wait();
  ExecutorClock clock(::getpid());
  const uint64_t before = clock.Read().cpu_ns;
  Burn();
  EXPECT_LT(clock.Read().cpu_ns - before, kBurnNs / 2) << "what another thread computed";
  burn.set_value();
  burnt.get_future().wait();
  EXPECT_GE(clock.Read().cpu_ns - before, kBurnNs / 2);
  end.set_value();
  gpu.join();
}

TEST(ExecutorClockTest, TellsWhatTheBusiestHelperHasHad) {
  std::promise<void> burn, burnt, end;
  std::promise<void> named[2];
  std::shared_future<void> ended = end.get_future().share();
  const auto helper = [&](std::promise<void>& here, bool busy) {
    ::prctl(PR_SET_NAME, exec_link::kGpuWorkerName);
    here.set_value();
    if (busy) {
      burn.get_future().wait();
      Burn();
      burnt.set_value();
    }
    ended.wait();
  };
  std::thread busy([&] { helper(named[0], true); });
  std::thread idle([&] { helper(named[1], false); });
  named[0].get_future().wait();
  named[1].get_future().wait();
  ExecutorClock clock(::getpid());
  EXPECT_EQ(clock.HelperCpuNsSinceMark(), 0u) << "nothing is marked";
  clock.MarkHelpers();
  Burn();
  EXPECT_LT(clock.HelperCpuNsSinceMark(), kBurnNs / 2) << "what no helper computed";
  burn.set_value();
  burnt.get_future().wait();
  EXPECT_GE(clock.HelperCpuNsSinceMark(), kBurnNs / 2);
  clock.MarkHelpers();
  EXPECT_LT(clock.HelperCpuNsSinceMark(), kBurnNs / 2);
  end.set_value();
  busy.join();
  idle.join();
}

TEST(ExecutorClockTest, WithoutAGpuThreadCountsTheProcess) {
  ExecutorClock clock(::getpid());
  const uint64_t before = clock.Read().cpu_ns;
  Burn();
  EXPECT_GE(clock.Read().cpu_ns - before, kBurnNs / 2);
}

TEST(ExecutorClockTest, KnowsAnEndingProcess) {
  EXPECT_FALSE(ExecutorClock(::getpid()).IsEnding());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(0, ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT));
  EXPECT_TRUE(ExecutorClock(child).IsEnding());
  ASSERT_EQ(child, ::waitpid(child, nullptr, 0));
  EXPECT_TRUE(ExecutorClock(child).IsEnding());
}

}  // namespace
}  // namespace vgpud
