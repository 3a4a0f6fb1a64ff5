// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/thread_priority.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "base/exec_link.h"

namespace vgpud::daemon {
namespace {

constexpr int kUnknown = 1000;

// A process with one ordinary thread and as many that say they are GPU threads as are wanted.
class Process {
 public:
  explicit Process(int gpu_threads) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) Live(ready[1], gpu_threads);
    ::close(ready[1]);
    tids_.resize(static_cast<size_t>(gpu_threads));
    for (pid_t& tid : tids_) EXPECT_EQ(static_cast<ssize_t>(sizeof tid), ::read(ready[0], &tid, sizeof tid));
    ::close(ready[0]);
  }
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  // In the order of their start.
  const std::vector<pid_t>& gpu_threads() const { return tids_; }
  static int NiceOf(pid_t tid) {
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(tid));
    return errno == 0 ? nice : kUnknown;
  }
  // Nanoseconds, of struct sched_attr (sched_getattr(2)).
  static uint64_t SliceOf(pid_t tid) {
    uint64_t attributes[6] = {};
    EXPECT_EQ(0, ::syscall(SYS_sched_getattr, tid, attributes, sizeof attributes, 0));
    return attributes[3];
  }

 private:
  [[noreturn]] static void Live(int ready, int gpu_threads) {
    for (int n = 0; n < gpu_threads; ++n) {
      std::thread([ready] {
        ::prctl(PR_SET_NAME, exec_link::kGpuThreadName);
        const auto tid = static_cast<pid_t>(::syscall(SYS_gettid));
        if (::write(ready, &tid, sizeof tid) != sizeof tid) ::_exit(1);
        for (;;) ::pause();
      }).detach();
    }
    for (;;) ::pause();
  }
  pid_t pid_ = -1;
  std::vector<pid_t> tids_;
};

TEST(ThreadPriority, OnlyTheFirstGpuThreadsAreSpared) {
  const Process process(2);
  const int before = Process::NiceOf(process.pid());
  SetOtherThreads(process.pid(), 1, {.nice = kLowestNice});
  EXPECT_EQ(kLowestNice, Process::NiceOf(process.pid()));
  const int one = Process::NiceOf(process.gpu_threads()[0]), other = Process::NiceOf(process.gpu_threads()[1]);
  EXPECT_EQ(before + kLowestNice, one + other) << one << " and " << other;
}

TEST(ThreadPriority, WithNoneSparedAllAreLowered) {
  const Process process(1);
  SetOtherThreads(process.pid(), 0, {.nice = kLowestNice});
  EXPECT_EQ(kLowestNice, Process::NiceOf(process.pid()));
  EXPECT_EQ(kLowestNice, Process::NiceOf(process.gpu_threads()[0]));
}

TEST(ThreadPriority, OthersGetTheProcessorsThatAreGiven) {
  const cpu_set_t all = AllProcessors();
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<size_t>(last), &all)) --last;
  const Process process(1);
  const auto of = [](pid_t tid) {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(0, ::sched_getaffinity(tid, sizeof set, &set));
    return set;
  };
  const cpu_set_t one = OneProcessor(last);
  SetOtherThreads(process.pid(), 1, {.processors = one});
  const cpu_set_t other = of(process.pid()), spared = of(process.gpu_threads()[0]);
  EXPECT_TRUE(CPU_EQUAL(&one, &other));
  EXPECT_TRUE(CPU_EQUAL(&all, &spared));
  SetOtherThreads(process.pid(), 0, {.processors = all});
  const cpu_set_t back = of(process.pid());
  EXPECT_TRUE(CPU_EQUAL(&all, &back));
}

TEST(ThreadPriority, WayBackIsForWhomTheKernelAllowsIt) {
  const Process process(0);
  SetOtherThreads(process.pid(), 0, {.nice = kLowestNice});
  SetOtherThreads(process.pid(), 0, {.nice = kOrdinaryNice});
  const int nice = Process::NiceOf(process.pid());
  EXPECT_TRUE(nice == kOrdinaryNice || nice == kLowestNice) << nice;
}

TEST(ThreadPriority, TheTimeOfAProcessThatIsGoneIsNone) {
  pid_t pid = -1;
  {
    const Process process(1);
    pid = process.pid();
    EXPECT_GE(GpuThreadsTime(pid, 1), Ns{0});
  }
  EXPECT_EQ(Ns{0}, GpuThreadsTime(pid, 1));
}

// In a thread of its own, which is as it was for the others.
TEST(ThreadPriority, WhatARaisedThreadStartsIsOrdinary) {
  std::thread([] {
    const int before = Process::NiceOf(static_cast<pid_t>(::syscall(SYS_gettid)));
    const bool raised = RaiseOwnThread();
    const int own = Process::NiceOf(static_cast<pid_t>(::syscall(SYS_gettid)));
    if (!raised) {
      EXPECT_EQ(before, own);
      return;
    }
    EXPECT_LT(own, kOrdinaryNice);
    std::thread([] { EXPECT_EQ(kOrdinaryNice, Process::NiceOf(static_cast<pid_t>(::syscall(SYS_gettid)))); }).join();
  }).join();
}

TEST(ThreadPriority, AsManyGpuThreadsAreRaisedAsAreWanted) {
  const Process process(3);
  const int own = Process::NiceOf(process.pid());
  EXPECT_EQ(0u, RaiseGpuThreads(process.pid(), 0, std::nullopt) / 2) << "none, or the first";
  EXPECT_EQ(2u, RaiseGpuThreads(process.pid(), 2, std::nullopt));
  EXPECT_EQ(3u, RaiseGpuThreads(process.pid(), 4, std::nullopt)) << "there are no more";
  const Process other(3);
  EXPECT_EQ(2u, RaiseGpuThreads(other.pid(), 2, std::nullopt));
  int raised = 0;
  for (const pid_t tid : other.gpu_threads()) {
    const int nice = Process::NiceOf(tid);
    EXPECT_TRUE(nice == own || nice == -10) << nice;
    raised += nice == -10;
  }
  EXPECT_TRUE(raised == 2 || (raised == 0 && ::geteuid() != 0)) << raised;
  EXPECT_EQ(own, Process::NiceOf(other.pid())) << "the others are as they were";
}

// The kernel tells the slice from Linux 6.12 on; an older one tells 0.
TEST(ThreadPriority, RaisedThreadsHaveTheShortestSlice) {
  const Process process(2);
  const uint64_t before = Process::SliceOf(process.gpu_threads()[0]);
  ASSERT_EQ(1u, RaiseGpuThreads(process.pid(), 1, std::nullopt));
  pid_t raised = process.gpu_threads()[0], other = process.gpu_threads()[1];
  if (Process::NiceOf(other) != kOrdinaryNice) std::swap(raised, other);
  if (Process::NiceOf(raised) == kOrdinaryNice) return;  // an ordinary user
  EXPECT_EQ(before == 0 ? 0u : 100'000u, Process::SliceOf(raised));
  EXPECT_EQ(before, Process::SliceOf(other));
  SetOtherThreads(process.pid(), 0, {.nice = kOrdinaryNice});
  EXPECT_EQ(before, Process::SliceOf(raised)) << "an ordinary thread has the kernel's slice again";
}

TEST(ThreadPriority, RaisedThreadsGetTheProcessorsThatAreGiven) {
  const Process process(1);
  const cpu_set_t all = AllProcessors();
  int first = 0;
  while (!CPU_ISSET(static_cast<size_t>(first), &all)) ++first;
  const cpu_set_t one = OneProcessor(first);
  EXPECT_EQ(1, CPU_COUNT(&one));
  EXPECT_EQ(1u, RaiseGpuThreads(process.pid(), 1, one));
  cpu_set_t its;
  ASSERT_EQ(0, ::sched_getaffinity(process.gpu_threads()[0], sizeof its, &its));
  EXPECT_TRUE(CPU_EQUAL(&one, &its));
  ASSERT_EQ(0, ::sched_getaffinity(process.pid(), sizeof its, &its));
  EXPECT_TRUE(CPU_EQUAL(&all, &its));
  const cpu_set_t others = AllProcessorsBut(first);
  EXPECT_EQ(CPU_COUNT(&all) - 1, CPU_COUNT(&others));
  EXPECT_FALSE(CPU_ISSET(static_cast<size_t>(first), &others));
}

TEST(ThreadPriority, OwnThreadIsRaisedByFifteen) {
  std::thread([] {
    if (!RaiseOwnThread()) return;
    EXPECT_EQ(-15, Process::NiceOf(static_cast<pid_t>(::syscall(SYS_gettid))));
  }).join();
  EXPECT_EQ(0, kOrdinaryNice);
  EXPECT_EQ(19, kLowestNice);
}

}  // namespace
}  // namespace vgpud::daemon
