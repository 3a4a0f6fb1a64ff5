// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/pacer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

TEST(PartOfTimeTest, WhoWasBusyRestsForAsManyTimesAsLongAsThereAreOtherParts) {
  const struct {
    Ns passed, used, rest;
  } kCases[] = {{0ms, 0ms, 0ms}, {8ms, 0ms, 0ms}, {8ms, 1ms, 0ms}, {8ms, 2ms, 8ms}, {8ms, 8ms, 56ms}, {9s, 9s, 1s}};
  for (const auto& row : kCases) {
    PartOfTime eighth(8);
    eighth.Begin(TimePoint{100s}, 7s);
    EXPECT_EQ(row.rest, eighth.Rest(TimePoint{100s} + row.passed, 7s + row.used))
        << row.passed.count() << " " << row.used.count();
  }
}

class PacerTest : public testing::Test {
 protected:
  // Begins as `name`, and stops the loop when as many have as are expected.
  void Enter(
      const std::string& name, std::function<void()> then = [] {}, const std::string& who = "someone") {
    turns_.push_back(nullptr);
    const size_t at = turns_.size() - 1;
    turns_[at] = pacer_.Enter(who, [this, name, at, then] {
      turns_[at].reset();
      begun_ += name;
      then();
      if (begun_.size() == expected_) loop_.Stop();
    });
  }
  void Run(size_t expected) {
    expected_ = expected;
    loop_.Run();
  }

  EventLoop loop_;
  Pacer pacer_{loop_};
  std::vector<Pacer::Turn> turns_;
  std::string begun_;
  size_t expected_ = 0;
};

TEST_F(PacerTest, TheyBeginInTheOrderInWhichTheyCameButThoseThatLeft) {
  for (const char* name : {"a", "b", "c", "d"}) Enter(name);
  turns_[0].reset();
  turns_[2].reset();
  Run(2);
  EXPECT_EQ("bd", begun_);
  Enter("e");
  Run(3);
  EXPECT_EQ("bde", begun_);
}

TEST_F(PacerTest, OthersAreServedBetweenAnyTwo) {
  const auto tick = loop_.Timer([this] { begun_ += "."; });
  for (const char* name : {"a", "b", "c"}) Enter(name, [&] { tick->Arm(0ns); });
  Run(5);
  EXPECT_EQ("a.b.c", begun_);
}

TEST_F(PacerTest, WhatItsTurnDoesMayEndOthersAndEnterAgain) {
  Enter("a", [this] {
    turns_[1].reset();
    Enter("d");
  });
  Enter("b");
  Enter("c");
  Run(3);
  EXPECT_EQ("acd", begun_);
}

void Compute(Ns time) {
  for (const Ns until = ThreadTime() + time; ThreadTime() < until;) continue;
}

TEST_F(PacerTest, WhoAsksNowAndThenIsNotBehindThoseThatAskWithoutEnd) {
  for (int i = 0; i < 5; ++i)
    Enter(
        "a", [] { Compute(1ms); }, "first");
  for (int i = 0; i < 5; ++i)
    Enter(
        "b", [] { Compute(1ms); }, "second");
  Run(4);
  Enter(
      "c", [] {}, "third");
  Run(5);
  EXPECT_EQ('c', begun_.back()) << begun_;
}

TEST_F(PacerTest, WhatIsDoneForSomebodyOutsideOfATurnCounts) {
  Enter(
      "a", [this] { pacer_.Charge("first", 1s); }, "first");
  Run(1);
  for (int i = 0; i < 3; ++i)
    Enter(
        "a", [] {}, "first");
  for (int i = 0; i < 3; ++i)
    Enter(
        "b", [] {}, "second");
  Run(7);
  EXPECT_EQ("abbbaaa", begun_);
}

TEST_F(PacerTest, SevenEighthsOfTheTimeOfTheThreadAreLeft) {
  const TimePoint start = Now();
  const Ns used = ThreadTime();
  for (int i = 0; i < 10; ++i) Enter("x", [] { Compute(5ms); });
  Run(10);
  EXPECT_GE(Now() - start, (ThreadTime() - used) * 7);  // the last one has not rested yet
}

}  // namespace
}  // namespace vgpud::daemon
