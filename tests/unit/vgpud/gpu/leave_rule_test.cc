// SPDX-License-Identifier: Apache-2.0
// Who hangs, and who has no CPU: figures of the kernel's accounts, and no clock.
#include "vgpud/gpu/leave_rule.h"

#include <gtest/gtest.h>

#include <ostream>

namespace vgpud::daemon {

void PrintTo(Leaving verdict, std::ostream* out) {
  constexpr const char* kNames[] = {"may yet", "starves", "hangs"};
  *out << kNames[static_cast<int>(verdict)];
}

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kTimeout = 10 * kMs;

struct RuleCase {
  const char* name;
  LeaveFigures figures;
  Leaving verdict;
};
void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.name; }

class LeaveRule : public testing::TestWithParam<RuleCase> {};

TEST_P(LeaveRule, Judges) { EXPECT_EQ(GetParam().verdict, JudgeLeaving(GetParam().figures, kTimeout)); }

INSTANTIATE_TEST_SUITE_P(
    , LeaveRule,
    testing::Values(
        // Ten milliseconds are ten milliseconds.
        RuleCase{"ItComputedAllTheTime", {.elapsed_ns = 10 * kMs, .cpu_ns = 10 * kMs, .ready = true}, Leaving::kHangs},
        RuleCase{"ItComputedHalfOfTheTime", {.elapsed_ns = 6 * kMs, .cpu_ns = 5 * kMs, .ready = true}, Leaving::kHangs},
        RuleCase{"ItHasBarelyBegun", {.elapsed_ns = 4 * kMs, .cpu_ns = 4 * kMs, .ready = true}, Leaving::kMayYet},
        RuleCase{"ItSleeps", {.elapsed_ns = 10 * kMs}, Leaving::kHangs},
        RuleCase{"ItSleepsSinceAMoment", {.elapsed_ns = 4 * kMs}, Leaving::kMayYet},
        // The host took time: only then is there more.
        RuleCase{"ItWaitedALittleAndComputed",
                 {.elapsed_ns = 10 * kMs, .cpu_ns = 9 * kMs, .waited_ns = kMs, .ready = true},
                 Leaving::kMayYet},
        RuleCase{"ItWaitedLessThanIsSure",
                 {.elapsed_ns = 10 * kMs, .cpu_ns = 9 * kMs, .waited_ns = kMs - 1, .ready = true},
                 Leaving::kHangs},
        RuleCase{"ItWaitedForItsOwnVf",
                 {.elapsed_ns = 10 * kMs, .cpu_ns = 7 * kMs, .waited_ns = 3 * kMs, .others_ns = 3 * kMs, .ready = true},
                 Leaving::kHangs},
        RuleCase{"MoreIsNotForEver",
                 {.elapsed_ns = 33 * kMs, .cpu_ns = 30 * kMs, .waited_ns = 3 * kMs, .ready = true},
                 Leaving::kHangs},
        RuleCase{"AHypervisorTookIt",
                 {.elapsed_ns = 20 * kMs, .cpu_ns = 20 * kMs, .stolen_ns = 20 * kMs, .ready = true},
                 Leaving::kMayYet},
        RuleCase{"AHypervisorTookPartOfIt",
                 {.elapsed_ns = 60 * kMs, .cpu_ns = 50 * kMs, .stolen_ns = 20 * kMs, .ready = true},
                 Leaving::kHangs},
        // No CPU, no guilt.
        RuleCase{"ItHadNone", {.elapsed_ns = 10 * kMs, .waited_ns = 10 * kMs, .ready = true}, Leaving::kStarves},
        RuleCase{"ItHadLittle",
                 {.elapsed_ns = 12 * kMs, .cpu_ns = 6 * kMs, .waited_ns = 6 * kMs, .ready = true},
                 Leaving::kStarves},
        RuleCase{"ItHadNoneForAnHour",
                 {.elapsed_ns = 3'600'000 * kMs, .waited_ns = 3'600'000 * kMs, .ready = true},
                 Leaving::kStarves},
        RuleCase{"ItsOwnVfHadIt",
                 {.elapsed_ns = 50 * kMs, .waited_ns = 50 * kMs, .others_ns = 50 * kMs, .ready = true},
                 Leaving::kStarves},
        RuleCase{"ItsOwnVfHadItForLong",
                 {.elapsed_ns = 100 * kMs, .waited_ns = 100 * kMs, .others_ns = 50 * kMs, .ready = true},
                 Leaving::kHangs},
        RuleCase{"NothingIsKnown", {.elapsed_ns = 500 * kMs, .cpu_ns = kMs, .known = false}, Leaving::kMayYet},
        RuleCase{"NothingIsKnownButThatItComputes",
                 {.elapsed_ns = 500 * kMs, .cpu_ns = 5 * kMs, .known = false},
                 Leaving::kHangs}),
    [](const auto& p) { return std::string(p.param.name); });

// However the host divides its time, an executor that never leaves is off the GPU soon: it hangs, or it starves.
TEST(LeaveRuleTest, NobodyStaysForLongWhateverTheHostDoes) {
  constexpr uint64_t kMost = 60 * kMs;
  for (uint64_t percent = 0; percent <= 100; ++percent) {
    uint64_t now = kTimeout;
    const auto at = [&] {
      return LeaveFigures{
          .elapsed_ns = now, .cpu_ns = now / 100 * percent, .waited_ns = now / 100 * (100 - percent), .ready = true};
    };
    while (now <= kMost && JudgeLeaving(at(), kTimeout) == Leaving::kMayYet) now += kTimeout;
    EXPECT_LE(now, kMost) << percent << " % of a CPU";
  }
}

}  // namespace
}  // namespace vgpud::daemon
