// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/stolen_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace
}  // namespace vgpud::daemon
