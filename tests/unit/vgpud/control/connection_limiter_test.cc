// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/connection_limiter.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kCame{100s};

struct StayCase {
  const char* name;
  bool has_request;
  Ns since;  // that, after it came
  Ns now;    // after it came
  bool full;
  bool leaves;
};
constexpr StayCase kCases[] = {
    {"one that has just come", false, 0s, 0s, true, false},
    {"without a request for a while", false, 0s, 9s, false, false},
    {"without a request for too long", false, 0s, 10s, false, true},
    {"silent again after an answer", false, 50s, 59s, false, false},
    {"silent for too long after an answer", false, 50s, 60s, false, true},
    {"silent while others wait", false, 0s, 1s, true, true},
    {"with an answer on the way while others wait", true, 5s, 200s, true, false},
    {"that does not take its answer", true, 5s, 305s, false, true},
};

TEST(ConnectionLimiterTest, WhoHasNothingToAskMakesRoomForOthers) {
  const ConnectionLimiter::Rules rules{.most = 2};
  for (const StayCase& c : kCases)
    EXPECT_EQ(c.leaves, ConnectionLimiter::WhyLeave(rules, {kCame, kCame + c.since, c.has_request}, kCame + c.now,
                                                    c.full) != nullptr)
        << c.name;
}

TEST(ConnectionLimiterTest, ALimitedStayIsOverEvenWhileBusy) {
  const ConnectionLimiter::Rules rules{.most = 2, .stay = 30s};
  EXPECT_EQ(nullptr, ConnectionLimiter::WhyLeave(rules, {kCame, kCame, true}, kCame + 29s, false));
  EXPECT_NE(nullptr, ConnectionLimiter::WhyLeave(rules, {kCame, kCame, true}, kCame + 30s, false));
}

}  // namespace
}  // namespace vgpud
