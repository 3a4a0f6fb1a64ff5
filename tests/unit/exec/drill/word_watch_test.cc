// SPDX-License-Identifier: Apache-2.0
// How many warp instructions kernels run after a word was copied to the device: what the log says of it. Time is
// counted in instructions, and no kernel runs.
#include "gpu/exec/drill/word_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/log.h"

namespace vgpud::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One for all tests: a process says once where its log goes.
std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}
bool Keep(std::optional<LogLevel>, std::string_view, std::string_view text) {
  Lines().emplace_back(text);
  return true;
}

// Only who it is counts.
class Grid : public GpuGrid {
 public:
  GpuResult<Progress> Run(const StopWord&, uint64_t) override { return Progress::kDone; }
  uint64_t warp_instructions() const override { return 0; }
};

class WordWatchTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { SetLogSink(&Keep); }
  static void TearDownTestSuite() { SetLogSink(nullptr); }
  void SetUp() override { Lines().clear(); }
  // What the log says of a step; `blocks` x 2 x 3 blocks of 32 x 2 x 2 threads.
  std::vector<std::string> Ran(const Grid& grid, uint64_t instructions, bool done, const char* name = "k",
                               uint32_t blocks = 1) {
    FunctionInfo function;
    function.name = name;
    watch_.Ran(&grid, function, LaunchShape{{blocks, 2, 3}, {32, 2, 2}, 0}, instructions, done);
    return std::exchange(Lines(), {});
  }
  WordWatch watch_;
  Grid first_, second_;
};

constexpr bool kDone = true, kGoesOn = false;

TEST_F(WordWatchTest, WithoutAWordOnlyTheLongestIsTold) {
  EXPECT_THAT(Ran(first_, 100, kGoesOn), IsEmpty());
  EXPECT_THAT(Ran(first_, 250, kDone, "k", 4), ElementsAre("longest: k threads=128 blocks=24 launched=250"));
  EXPECT_THAT(Ran(first_, 250, kDone), IsEmpty()) << "as long as the longest";
  EXPECT_THAT(Ran(first_, 249, kDone), IsEmpty());
  EXPECT_THAT(Ran(first_, 251, kDone), ElementsAre("longest: k threads=128 blocks=6 launched=251"));
  EXPECT_THAT(Ran(first_, 10, kDone, "other"), ElementsAre("longest: other threads=128 blocks=6 launched=10"));
}

TEST_F(WordWatchTest, InstructionsCountFromTheWordOn) {
  Ran(first_, 1000, kGoesOn);
  watch_.Wrote();
  EXPECT_THAT(Ran(first_, 1200, kGoesOn), IsEmpty());
  EXPECT_THAT(Ran(first_, 1700, kDone), ElementsAre("word: k threads=128 blocks=6 launched=1700 after=700",
                                                    "longest: k threads=128 blocks=6 launched=1700"));
}

TEST_F(WordWatchTest, TheFirstWordCounts) {
  Ran(first_, 1000, kGoesOn);
  watch_.Wrote();
  Ran(first_, 1500, kGoesOn);
  watch_.Wrote();
  EXPECT_THAT(Ran(first_, 1600, kDone), testing::Contains("word: k threads=128 blocks=6 launched=1600 after=600"));
}

TEST_F(WordWatchTest, AWordIsForAllThatRunThenAndForNoOther) {
  watch_.Wrote();
  Ran(first_, 10, kGoesOn, "a");
  Ran(second_, 20, kGoesOn, "b");
  watch_.Wrote();
  EXPECT_THAT(Ran(first_, 15, kDone, "a"), testing::Contains("word: a threads=128 blocks=6 launched=15 after=5"));
  EXPECT_THAT(Ran(second_, 22, kDone, "b"), testing::Contains("word: b threads=128 blocks=6 launched=22 after=2"));
}

// A grid's memory is used again by a later one.
TEST_F(WordWatchTest, WhatHasEndedIsForgotten) {
  Ran(first_, 1000, kGoesOn);
  watch_.Wrote();
  Ran(first_, 1000, kDone);
  EXPECT_THAT(Ran(first_, 900, kDone), IsEmpty());
}

}  // namespace
}  // namespace vgpud::exec
