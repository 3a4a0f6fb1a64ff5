// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/stolen_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "vgpud/gpu/slice_world.h"
#include "vgpud/host/child.h"

namespace vgpud::daemon {
namespace {

class StolenTimeTest : public testing::Test {
 protected:
  StolenTimeTest() { path_ = testing::TempDir() + "stat-" + std::to_string(::getpid()); }
  ~StolenTimeTest() override { std::filesystem::remove(path_); }
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  const uint64_t tick_ns_ = 1'000'000'000u / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  std::string path_;
};

TEST_F(StolenTimeTest, TheProcessorThatLostMostCounts) {
  Write("cpu  9 9 9 9 9 9 9 30 9 9\ncpu0 1 2 3 4 5 6 7 10 9 0\ncpu1 1 2 3 4 5 6 7 20 9 0\nintr 5 6\n");
  StolenTime stolen(path_);
  stolen.Mark();
  EXPECT_EQ(0u, stolen.MostSinceMark());
  Write("cpu  9 9 9 9 9 9 9 38 9 9\ncpu0 2 2 3 4 5 6 7 13 9 0\ncpu1 1 2 3 4 5 6 7 25 9 0\nintr 5 6\n");
  EXPECT_EQ(6 * tick_ns_, stolen.MostSinceMark());
}

TEST_F(StolenTimeTest, NothingWithoutAMarkOrAFileOrWhenProcessorsComeOrGo) {
  Write("cpu0 1 2 3 4 5 6 7 10 9 0\n");
  StolenTime stolen(path_);
  EXPECT_EQ(0u, stolen.MostSinceMark());
  stolen.Mark();
  Write("cpu0 1 2 3 4 5 6 7 90 9 0\ncpu1 1 2 3 4 5 6 7 90 9 0\n");
  EXPECT_EQ(0u, stolen.MostSinceMark());
  std::filesystem::remove(path_);
  EXPECT_EQ(0u, stolen.MostSinceMark());
  stolen.Mark();
  EXPECT_EQ(0u, stolen.MostSinceMark());
}

TEST_F(StolenTimeTest, AKernelThatCountsNoSuchThingTakesNothing) {
  Write("cpu0 1 2 3 4\n");
  StolenTime stolen(path_);
  stolen.Mark();
  Write("cpu0 100 200 300 400\n");
  EXPECT_EQ(0u, stolen.MostSinceMark());
}

// The kernel books what a hypervisor took as computing.
TEST_F(StolenTimeTest, IsNoProofThatAnExecutorHangs) {
  constexpr VfId kVf{0};
  Write("cpu0 0 0 0 0 0 0 0 100 0 0\n");
  SliceWorld world(std::chrono::milliseconds{10},
                   {.at_boundary = [](TimePoint) {},
                    .on_killed = [](VfId, const std::string&, const SliceWorld::Hang&) {},
                    .on_parked = [](VfId) {}},
                   StolenTime(path_));
  auto memory = *MakeSliceMemory("a");
  const auto slices = *MapSlices(memory.grant_fd.get(), memory.slots_fd.get());
  world.Add(kVf, "a", std::move(memory));
  const Child computes =
      *Child::Spawn({.program = "/bin/sh", .arguments = {"sh", "-c", "while :; do :; done"}, .files = {}});
  world.AddExecutor(kVf, 1, {1, computes.pid(), *Dup(computes.pidfd())});
  slices.slot_page().slots[1].state.store(static_cast<uint32_t>(ExecState::kRunning));
  const uint64_t start = MonotonicNs();
  world.Drain(kVf);
  EXPECT_TRUE(world.Excused(kVf));
  Write("cpu0 0 0 0 0 0 0 0 120 0 0\n");
  while (world.Excused(kVf)) ASSERT_LT(MonotonicNs() - start, 60'000'000'000u);
  EXPECT_GE(MonotonicNs() - start, 20 * tick_ns_);
}

}  // namespace
}  // namespace vgpud::daemon
