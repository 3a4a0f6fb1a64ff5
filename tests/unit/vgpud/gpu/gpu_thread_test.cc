// SPDX-License-Identifier: Apache-2.0
// The scheduler thread in real time: what happens, never when.
#include "vgpud/gpu/gpu_thread.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <optional>
#include <thread>

#include "sched/registry.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

constexpr VfId kVf{2};

class GpuThreadTest : public testing::Test {
 protected:
  void Start(const char* policy) {
    GpuThread::Options options;
    options.switcher.stays = false;
    options.waiter.fifo_priority = 0;
    options.switcher.preempt_timeout = 100us;
    options.switcher.excuse_limit = 200us;
    options.switcher.finish_timeout = 24h;
    options.switcher.hang_limit = 1;
    gpu_ = std::make_unique<GpuThread>(
        options, *MakePolicy(policy, {}),
        GpuThread::Events{[](VfId, const std::string&, const SliceWorld::Hang&) {}, [this](VfId) { ++parked_; }},
        replies_);
    auto memory = *MakeSliceMemory("a");
    slices_ = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
    VfView view;
    view.vf = kVf;
    Await([&](GpuThread::Done done) { gpu_->AddVf(view, "a", std::move(memory), done); });
  }
  // Calls `ask` with a callback and handles replies until it has been called.
  template <class Ask>
  void Await(Ask ask) {
    bool answered = false;
    ask([&](uint64_t) { answered = true; });
    while (!answered) {
      replies_.RunAll();
      std::this_thread::yield();
    }
  }
  // From now on an executor computes for good, whatever it is told.
  void StartExecutor(uint64_t generation) {
    executors_.push_back(*Child::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "1000"}, .files = {}}));
    gpu_->AddExecutor(kVf, 1, {generation, executors_.back().pid(), *Dup(executors_.back().pidfd())});
    slices_.slot_page().slots[1].state.store(static_cast<uint32_t>(ExecState::kRunning));
    Ring(slices_.slot_page());
  }
  void EndExecutor(uint64_t generation) {
    slices_.slot_page().slots[1].state.store(static_cast<uint32_t>(ExecState::kNone));
    gpu_->RemoveExecutor(kVf, 1, generation);
  }
  // Until so many turns have ended with parking.
  void AwaitHangs(uint64_t hangs) {
    for (uint64_t seen = 0; seen < hangs; std::this_thread::yield()) {
      SliceTrace::Reader reader{gpu_->trace()};
      seen = 0;
      for (SliceRecord record; reader.Next(&record);) seen += record.reason == TurnEnd::kHang;
    }
  }

  UniqueFd reply_event_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  TaskQueue replies_{reply_event_.get()};
  SliceView slices_;
  int parked_ = 0;
  std::vector<Child> executors_;
  std::unique_ptr<GpuThread> gpu_;
};

TEST_F(GpuThreadTest, AParkingThatAPardonHasOvertakenIsNotReported) {
  Start("strict");
  StartExecutor(1);
  AwaitHangs(1);
  EndExecutor(1);
  const auto pardon = [&](GpuThread::Done done) { gpu_->Reinstate(kVf, done); };
  Await(pardon);
  EXPECT_EQ(0, parked_);
  StartExecutor(2);
  AwaitHangs(2);
  replies_.RunAll();
  EXPECT_EQ(1, parked_);
  Await(pardon);
  EXPECT_EQ(1, parked_);
}

TEST_F(GpuThreadTest, AnotherPolicyDoesNotWaitForAKernelThatMayFinish) {
  Start("relaxed");
  StartExecutor(1);
  Await([&](GpuThread::Done done) { gpu_->Apply({.policy = *MakePolicy("strict", {})}, done); });
  AwaitHangs(1);
}

TEST_F(GpuThreadTest, NobodyHasATurnWhileItIsHeld) {
  Start("strict");
  gpu_->Hold();
  StartExecutor(1);
  VfView other;
  other.vf = VfId{5};
  // Answered at a turn boundary, at which the first has work.
  Await([&](GpuThread::Done done) { gpu_->AddVf(other, "b", *MakeSliceMemory("b"), done); });
  EXPECT_EQ(0u, slices_.grant_page().granted_ns.load());
  gpu_->Release();
  AwaitHangs(1);
  EXPECT_NE(0u, slices_.grant_page().granted_ns.load());
}

TEST_F(GpuThreadTest, StatsAreCompleteAlsoOfAVfThatLeavesMeanwhile) {
  Start("strict");
  StartExecutor(1);
  AwaitHangs(1);
  GpuStats stats;
  bool first = false;
  gpu_->ReadStats({VfId{77}, kVf}, [&](const GpuStats& s) { stats = s; });
  Await([&](GpuThread::Done done) {
    gpu_->RemoveVf(kVf, [&, done](uint64_t round) {
      first = !stats.vfs.empty();
      done(round);
    });
  });
  ASSERT_TRUE(first);
  ASSERT_EQ(2u, stats.vfs.size());
  EXPECT_EQ(0u, stats.vfs[0].account.slices);
  EXPECT_EQ(1u, stats.vfs[1].account.slices);
  EXPECT_EQ(1u, stats.vfs[1].times.turn_wait.count());
}

TEST_F(GpuThreadTest, AccountsComeInTheOrderInWhichTheyWereAskedFor) {
  Start("strict");
  StartExecutor(1);
  AwaitHangs(1);
  std::vector<VfAccount> accounts;
  gpu_->ReadAccounts({VfId{5}, kVf, VfId{1000}}, [&](const GpuAccounts& read) { accounts = read.vfs; });
  while (accounts.empty()) {
    replies_.RunAll();
    std::this_thread::yield();
  }
  ASSERT_EQ(3u, accounts.size());
  EXPECT_EQ(0u, accounts[0].slices);
  EXPECT_EQ(1u, accounts[1].slices);
  EXPECT_EQ(1u, accounts[1].hangs);
  EXPECT_GT(accounts[1].received_ns, 0u);
  EXPECT_EQ(0u, accounts[2].slices);
}

TEST_F(GpuThreadTest, WhatAVfDidIsToldWhenItHasLeft) {
  uint64_t slices = 0;
  int told = 0;
  GpuThread::Options options;
  options.waiter.fifo_priority = 0;
  options.trace_slices = 100;
  GpuThread gpu(options, *MakePolicy("strict", {}),
                GpuThread::Events{.on_killed = [](VfId, const std::string&, const SliceWorld::Hang&) {},
                                  .on_parked = [](VfId) {},
                                  .on_left =
                                      [&](VfId vf, const VfStats& last) {
                                        EXPECT_EQ(kVf, vf);
                                        slices = last.account.slices;
                                        ++told;
                                      }},
                replies_);
  EXPECT_EQ(128u, gpu.trace().capacity());
  EXPECT_FALSE(gpu.is_fifo());
  EXPECT_EQ(0ns, gpu.switch_cost());
  VfView view;
  view.vf = kVf;
  bool removed = false;
  gpu.AddVf(view, "a", *MakeSliceMemory("a"), [](uint64_t) {});
  gpu.RemoveVf(kVf, [&](uint64_t) { removed = true; });
  while (!removed) {
    replies_.RunAll();
    std::this_thread::yield();
  }
  EXPECT_EQ(1, told) << "before it is answered";
  EXPECT_EQ(0u, slices);
}

TEST_F(GpuThreadTest, TheFiguresOfAllComeWithThoseOfTheGpu) {
  Start("strict");
  StartExecutor(1);
  AwaitHangs(1);
  std::optional<GpuStats> stats;
  gpu_->ReadStats({kVf}, [&](const GpuStats& s) { stats = s; });
  while (!stats) {
    replies_.RunAll();
    std::this_thread::yield();
  }
  ASSERT_EQ(1u, stats->vfs.size());
  EXPECT_GT(stats->now_ns, 0u);
  EXPECT_FALSE(stats->fifo);
  EXPECT_EQ(0u, stats->impossible_events);
  EXPECT_EQ(stats->run_ns, stats->vfs[0].account.received_ns) << "it was alone";
  gpu_->ReadStats({}, [&](const GpuStats& s) { stats = s; });
  while (!stats->vfs.empty()) {
    replies_.RunAll();
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace vgpud::daemon
