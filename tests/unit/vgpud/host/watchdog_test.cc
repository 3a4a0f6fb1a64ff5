// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "vgpud/host/process_pulse.h"

namespace vgpud::daemon {
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

TEST(WatchdogTest, ItSaysForHowLongItHasNotBeenAnswered) {
  Watched process;
  EXPECT_EQ(0ns, process.dog.unanswered(process.now));
  EXPECT_EQ(0u, process.dog.sequence());
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  EXPECT_EQ(1u, process.dog.sequence());
  EXPECT_EQ(700ms, process.dog.unanswered(process.now + 700ms));
  process.dog.Excuse(process.now + 500ms);
  EXPECT_EQ(200ms, process.dog.unanswered(process.now + 700ms));
  EXPECT_TRUE(process.dog.Answered(1));
  EXPECT_EQ(0ns, process.dog.unanswered(process.now + 700ms));
  EXPECT_FALSE(Watchdog::Pulse{}.runnable);
  EXPECT_EQ(0u, Watchdog::Pulse{}.threads);
}

TEST(WatchdogTest, EachPatienceEndsToTheNanosecond) {
  Watched process;
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  EXPECT_EQ(Verdict::kWait, process.dog.Tick(process.now + 2s - 1ns, process.pulse));
  EXPECT_EQ(Verdict::kDead, process.dog.Tick(process.now + 2s, process.pulse));
  Watched busy;  // ready, and given no processor
  busy.pulse.runnable = true;
  ASSERT_EQ(Verdict::kAsk, busy.dog.Tick(busy.now, busy.pulse));
  EXPECT_EQ(Verdict::kWait, busy.dog.Tick(busy.now + 10s - 1ns, busy.pulse));
  EXPECT_EQ(Verdict::kDead, busy.dog.Tick(busy.now + 10s, busy.pulse));
  Watched asked;
  ASSERT_EQ(Verdict::kAsk, asked.dog.Tick(asked.now, asked.pulse));
  ASSERT_TRUE(asked.dog.Answered(1));
  EXPECT_EQ(Verdict::kWait, asked.dog.Tick(asked.now + 1s - 1ns, asked.pulse));
  EXPECT_EQ(Verdict::kAsk, asked.dog.Tick(asked.now + 1s, asked.pulse));
  EXPECT_EQ(250ms, Ns{Watchdog::kLookEvery});
}

TEST(WatchdogTest, OnlyWhatItComputedSinceTheLastLookCounts) {
  Watched process;
  process.pulse = {.runnable = true, .computed = 100s, .threads = 1};
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  process.pulse.computed = 101s;
  EXPECT_EQ(Verdict::kWait, process.dog.Tick(process.now + 3s, process.pulse)) << "one second of its own";
  process.pulse.computed = 50s;
  EXPECT_EQ(Verdict::kWait, process.dog.Tick(process.now + 4s, process.pulse)) << "an account that goes back";
  process.pulse.computed = 51s;
  EXPECT_EQ(Verdict::kDead, process.dog.Tick(process.now + 5s, process.pulse));
}

TEST(WatchdogTest, WhoHasAnsweredIsLeftAloneUntilItIsAskedAgain) {
  Watched process;
  ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
  EXPECT_EQ(Watchdog::kLookEvery, process.dog.NextLookIn(process.now)) << "it owes an answer";
  ASSERT_TRUE(process.dog.Answered(process.dog.sequence()));
  process.now += 250ms;
  EXPECT_EQ(Verdict::kWait, process.dog.Tick(process.now, process.pulse));
  EXPECT_EQ(Watchdog::kAskEvery - 250ms, process.dog.NextLookIn(process.now));
  process.now += process.dog.NextLookIn(process.now);
  EXPECT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
}

TEST(WatchdogTest, AllAreLookedAtInTheSameMoments) {
  for (const Ns late : {0ms, 1ms, 100ms, 249ms, 251ms, 999ms}) {
    Watched process;
    process.now += late;
    ASSERT_EQ(Verdict::kAsk, process.dog.Tick(process.now, process.pulse));
    const Ns wait = process.dog.NextLookIn(process.now);
    EXPECT_EQ(0ns, (process.now + wait).time_since_epoch() % Watchdog::kLookEvery) << late.count();
    EXPECT_GE(wait, Watchdog::kLookEvery);
    EXPECT_LT(wait, 2 * Watchdog::kLookEvery);
  }
}

TEST(ProcessPulseTest, EachFieldHasItsPlace) {
  const std::string fields[] = {"S", "1", "7",   "7",  "0", "-1", "4194560", "9", "0",
                                "0", "0", "150", "25", "0", "0",  "20",      "0", "6"};
  const auto text = [&](size_t changed, const std::string& to, size_t count = 18) {
    std::string all = "7 (x)";
    for (size_t i = 0; i < count; ++i) all += " " + (i == changed ? to : fields[i]);
    return all;
  };
  EXPECT_FALSE(ParsePulse(text(99, "", 17), 100)) << "the number of threads is missing";
  EXPECT_EQ(6u, ParsePulse(text(99, ""), 100)->threads);
  EXPECT_EQ(175s, ParsePulse(text(99, ""), 1)->computed);
  EXPECT_EQ(175ms, ParsePulse(text(99, ""), 1000)->computed);
  EXPECT_FALSE(ParsePulse(text(99, ""), 0));
  EXPECT_FALSE(ParsePulse(text(99, ""), -1));
  for (size_t at = 0; at < std::size(fields); ++at) {
    const auto pulse = ParsePulse(text(at, "R"), 100);
    const bool number = at == 11 || at == 12 || at == 17;
    EXPECT_EQ(!number, pulse.has_value()) << at;
    if (pulse) {
      EXPECT_EQ(at == 0, pulse->runnable) << at;
    }
    EXPECT_FALSE(ParsePulse(text(at, ""), 100)) << "two blanks at " << at;
  }
  EXPECT_EQ(1260ms, ParsePulse(text(11, "101"), 100)->computed);
  EXPECT_EQ(1510ms, ParsePulse(text(12, "1"), 100)->computed);
}

}  // namespace
}  // namespace vgpud::daemon
