#include "vgpud/host/child_log.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/log.h"

namespace vgpud {
namespace {

struct Bed {
  EventLoop loop;
  std::vector<std::string> lines;
  ChildLog log{loop, "a", [this](std::string_view origin, std::string_view line) {
                 lines.push_back(fmt::format("{}: {}", origin, line));
               }};
  // The end that the process has.
  UniqueFd Start(pid_t pid) {
    Pipe pipe = *MakePipe();
    log.Follow(pid, std::move(pipe.read));
    return std::move(pipe.write);
  }
};

void Say(const UniqueFd& to, const std::string& text) {
  ASSERT_EQ(static_cast<ssize_t>(text.size()), ::write(to.get(), text.data(), text.size()));
}

TEST(ChildLogTest, EachLineHasTheVfAndThePidInFront) {
  Bed bed;
  const UniqueFd one = bed.Start(7), other = bed.Start(8);
  Say(one, "first\nsecond ");
  Say(other, "vgpud: error: vf=good: parked\n");
  Say(one, "goes on\n\n");
  bed.log.Ended(7);
  bed.log.Ended(8);
  EXPECT_EQ((std::vector<std::string>{"vf=a pid=7: first", "vf=a pid=7: second goes on",
                                      "vf=a pid=8: vgpud: error: vf=good: parked"}),
            bed.lines);
}

TEST(ChildLogTest, LinesArriveWhileTheProcessRuns) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  Say(process, "hello\n");
  auto stop = bed.loop.Timer([&] { bed.loop.Stop(); });
  stop->Arm(std::chrono::milliseconds{1});
  bed.loop.Run();
  EXPECT_EQ(std::vector<std::string>{"vf=a pid=7: hello"}, bed.lines);
}

TEST(ChildLogTest, TheLastWordsOfADeadProcessNeedNoNewline) {
  Bed bed;
  Say(bed.Start(7), "terminate called");
  bed.log.Ended(7);
  EXPECT_EQ(std::vector<std::string>{"vf=a pid=7: terminate called"}, bed.lines);
}

TEST(ChildLogTest, ALineWithoutEndTakesNoMoreMemoryThanALineMayHave) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  Say(process, std::string(60'000, 'x'));
  Say(process, "\nnext\n");
  bed.log.Ended(7);
  ASSERT_EQ(2u, bed.lines.size());
  EXPECT_LT(bed.lines[0].size(), kMaxLogText + 50);
  EXPECT_EQ("vf=a pid=7: next", bed.lines[1]);
}

TEST(ChildLogTest, WhatIsBeyondTheBudgetIsDroppedAndCounted) {
  Bed bed;
  for (pid_t pid = 1; pid <= 3; ++pid) {
    const UniqueFd process = bed.Start(pid);
    for (uint32_t i = 0; i < ChildLog::kLinesAtOnce; ++i) Say(process, "x\n");
    bed.log.Ended(pid);
  }
  EXPECT_GE(bed.lines.size(), ChildLog::kLinesAtOnce);
  EXPECT_LT(bed.lines.size(), 2 * ChildLog::kLinesAtOnce);
  EXPECT_EQ(3 * ChildLog::kLinesAtOnce, bed.lines.size() + bed.log.dropped());
}

TEST(ChildLogTest, AProcessThatWritesWithoutEndDoesNotKeepTheLoopBusy) {
  Bed bed;
  const UniqueFd process = bed.Start(7);
  const std::string page(4096, '\n');
  uint64_t taken = 0;
  auto writer = bed.loop.OnWritable(process.get(), [&] {
    if (const ssize_t n = ::write(process.get(), page.data(), page.size()); n > 0) taken += static_cast<uint64_t>(n);
  });
  auto stop = bed.loop.Timer([&] { bed.loop.Stop(); });
  stop->Arm(std::chrono::milliseconds{300});
  bed.loop.Run();
  // The reserve, 0.3 s at the rate and a full pipe, with as much again for a slow machine.
  EXPECT_LT(taken, 4 * ChildLog::kBytesPerSecond);
}

}  // namespace
}  // namespace vgpud
