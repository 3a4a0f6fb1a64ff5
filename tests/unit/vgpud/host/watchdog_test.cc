// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "vgpud/host/process_pulse.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;
using Verdict = Watchdog::Verdict;

// A process that is looked at as often as it should be.
struct Watched {
  Watchdog dog;
  TimePoint now{1000s};
  Watchdog::Pulse pulse;
  // Lets looks pass until the verdict is another than to wait; how long that took, or `limit`.
  Ns UntilNot(Verdict expected, Ns limit, double computes, bool runnable) {
    const TimePoint start = now;
    while (now - start < limit) {
      now += Watchdog::kLookEvery;
      pulse.runnable = runnable;
      pulse.computed += Ns{static_cast<int64_t>(static_cast<double>(Watchdog::kLookEvery.count()) * computes)};
      if (const Verdict verdict = dog.Tick(now, pulse); verdict != expected) return now - start;
    }
    return limit;
  }
};

struct SilenceCase {
  const char* name;
  bool runnable;
  double computes;  // of the time
  Ns dead_after;
};
class SilenceTest : public testing::TestWithParam<SilenceCase> {};

TEST_P(SilenceTest, ASilentProcessIsDeadAfterItsExcusesAreOver) {
  Watched process;
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  EXPECT_EQ(GetParam().dead_after, process.UntilNot(Verdict::kWait, 60s, GetParam().computes, GetParam().runnable));
}
INSTANTIATE_TEST_SUITE_P(, SilenceTest,
                         testing::ValuesIn(std::vector<SilenceCase>{{"stopped", false, 0, 2s},
                                                                    {"in_an_endless_loop", true, 1, 2s},
                                                                    {"given_half_a_processor", true, 0.5, 4s},
                                                                    {"given_no_processor", true, 0, 10s}}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(WatchdogTest, OneThatAnswersIsAskedOnceASecondForEver) {
  Watched process;
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(process.dog.Answered(process.dog.sequence()));
    EXPECT_EQ(1s, process.UntilNot(Verdict::kWait, 60s, 0, false));
  }
}

TEST(WatchdogTest, ALateAnswerStartsAfresh) {
  Watched process;
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  EXPECT_EQ(1750ms, process.UntilNot(Verdict::kWait, 1750ms, 0, false));
  EXPECT_TRUE(process.dog.Answered(process.dog.sequence()));
  EXPECT_EQ(Ns{Watchdog::kLookEvery}, process.UntilNot(Verdict::kWait, 60s, 0, false)) << "asked again at once";
  EXPECT_EQ(2s, process.UntilNot(Verdict::kWait, 60s, 0, false));
}

TEST(WatchdogTest, OnlyTheAnswerToTheQuestionCounts) {
  Watched process;
  EXPECT_FALSE(process.dog.Answered(0));
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  EXPECT_FALSE(process.dog.Answered(process.dog.sequence() + 1));
  EXPECT_TRUE(process.dog.Answered(process.dog.sequence()));
  EXPECT_FALSE(process.dog.Answered(process.dog.sequence())) << "once";
}

TEST(WatchdogTest, TimeInWhichNobodyReadItsAnswersDoesNotCount) {
  Watched process;
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  process.now += 30s;
  process.dog.Excuse(process.now);
  EXPECT_EQ(2s, process.UntilNot(Verdict::kWait, 60s, 0, false));
}

TEST(ProcessPulseTest, StateAndTimeAreReadBehindAnyName) {
  const std::string name = "7 (a) R 1 (b)";
  const auto pulse = ParsePulse(name + " S 1 7 7 0 -1 4194560 9 0 0 0 150 25 0 0 20 0 6 0", 100);
  ASSERT_TRUE(pulse);
  EXPECT_FALSE(pulse->runnable);
  EXPECT_EQ(1750ms, pulse->computed);
  EXPECT_EQ(6u, pulse->threads);
  EXPECT_TRUE(ParsePulse("7 (x) R 1 7 7 0 -1 4194560 9 0 0 0 0 0 0 0 20 0 1", 100)->runnable);
}

TEST(ProcessPulseTest, AnythingElseIsNoPulse) {
  for (const char* text :
       {"", "7", "7 (x)", "7 (x) ", "7 (x) R 1 2", "7 (x) R 1 7 7 0 -1 4194560 9 0 0 0 x y 0 0 20 0 1 "})
    EXPECT_FALSE(ParsePulse(text, 100)) << text;
  EXPECT_FALSE(ProcessPulse(-1).Read().runnable);
}

TEST(ProcessPulseTest, OurOwnProcessIsSeenComputing) {
  const ProcessPulse self(::getpid());
  const Ns before = self.Read().computed;
  while (self.Read().computed == before) {
  }
  EXPECT_TRUE(self.Read().runnable);
}

}  // namespace
}  // namespace vgpud
