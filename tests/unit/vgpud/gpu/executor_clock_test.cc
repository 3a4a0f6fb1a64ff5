// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/executor_clock.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace vgpud::daemon {
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

// A thread that does what it is told, one thing after the other.
class Worker {
 public:
  ~Worker() {
    Do(nullptr);
    thread_.join();
  }
  // Returns at once.
  void Do(std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    todo_.push_back(std::move(what));
    some_.notify_one();
  }
  // Returns when it is done.
  void Finish(const std::function<void()>& what) {
    std::promise<void> done;
    Do([&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  void Main() {
    for (;;) {
      std::unique_lock lock(mutex_);
      some_.wait(lock, [&] { return !todo_.empty(); });
      const auto what = std::move(todo_.front());
      todo_.pop_front();
      lock.unlock();
      if (what == nullptr) return;
      what();
    }
  }
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<std::function<void()>> todo_;
  std::thread thread_{[this] { Main(); }};
};

TEST(ExecutorClockTest, TellsWhatTheBusiestThreadHasComputed) {
  Worker busy, idle;
  ExecutorClock clock(::getpid(), 8);
  clock.Mark();
  busy.Finish(&Burn);
  const ExecutorClock::Times times = clock.SinceMark();
  EXPECT_TRUE(times.known);
  EXPECT_GE(times.cpu_ns, kBurnNs / 2);
  clock.Mark();
  EXPECT_LT(clock.SinceMark().cpu_ns, kBurnNs / 2);
}

TEST(ExecutorClockTest, NoMoreThreadsAreLookedAtThanItMayHave) {
  Worker first;
  // Two; a sanitizer has one of its own.
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  std::vector<std::unique_ptr<Worker>> crowd(20);
  for (auto& worker : crowd) worker = std::make_unique<Worker>();
  ExecutorClock clock(::getpid(), static_cast<uint32_t>(threads));
  clock.Mark();
  crowd.back()->Finish(&Burn);
  EXPECT_LT(clock.SinceMark().cpu_ns, kBurnNs / 2) << "the last one is none of the first";
  clock.Mark();
  first.Finish(&Burn);
  EXPECT_GE(clock.SinceMark().cpu_ns, kBurnNs / 2);
}

TEST(ExecutorClockTest, AThreadThatSleptIsNotReady) {
  const pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  ExecutorClock clock(child, 2);
  // Until it sleeps it is ready, of course.
  const uint64_t limit = MonotonicNs() + 30'000'000'000;
  do {
    clock.Mark();
  } while (clock.SinceMark().ready && MonotonicNs() < limit);
  while (clock.SinceMark().elapsed_ns < 1'000'000) {
  }
  EXPECT_TRUE(clock.SinceMark().known);
  EXPECT_FALSE(clock.SinceMark().ready);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ExecutorClockTest, AThreadThatSharesItsCpuWaitsAndIsReady) {
  cpu_set_t allowed, one;
  ASSERT_EQ(0, ::sched_getaffinity(0, sizeof allowed, &allowed));
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  const uint64_t forked_at = MonotonicNs();
  pid_t children[2];
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    ::sched_setaffinity(0, sizeof one, &one);
    for (;;) {
    }
  }
  ExecutorClock clock(children[0], 2);
  const auto started = [&] { return clock.ProcessCpuNs() >= kBurnNs; };
  while (!started()) {
  }
  clock.Mark();
  const uint64_t limit = MonotonicNs() + 30'000'000'000;
  while (clock.SinceMark().waited_ns < kBurnNs && MonotonicNs() < limit) {
  }
  const ExecutorClock::Times times = clock.SinceMark();
  EXPECT_GE(times.waited_ns, kBurnNs);
  // The wait during which the mark was set counts as a whole.
  EXPECT_LE(times.waited_ns, MonotonicNs() - forked_at);
  EXPECT_TRUE(times.ready);
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

TEST(ExecutorClockTest, WhatCannotBeSeenIsNotKnown) {
  ExecutorClock clock(::getpid(), 0);
  clock.Mark();
  Burn();
  EXPECT_FALSE(clock.SinceMark().known);
  EXPECT_GE(clock.SinceMark().cpu_ns, kBurnNs / 2) << "of the whole process";
}

char StateOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

TEST(ExecutorClockTest, AProcessWhoseFirstThreadHasExitedIsNotEnding) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {
      for (;;) Burn();
    }).detach();
    for (;;) ::syscall(SYS_exit, 0);
  }
  while (StateOf(child) != 'Z') std::this_thread::yield();
  EXPECT_FALSE(ExecutorClock(child, 4).IsEnding());
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(0, ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT));
  EXPECT_TRUE(ExecutorClock(child, 4).IsEnding());
  ASSERT_EQ(child, ::waitpid(child, nullptr, 0));
}

TEST(ExecutorClockTest, KnowsAnEndingProcess) {
  EXPECT_FALSE(ExecutorClock(::getpid(), 2).IsEnding());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(0, ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT));
  EXPECT_TRUE(ExecutorClock(child, 2).IsEnding());
  ASSERT_EQ(child, ::waitpid(child, nullptr, 0));
  EXPECT_TRUE(ExecutorClock(child, 2).IsEnding());
}

}  // namespace
}  // namespace vgpud::daemon
