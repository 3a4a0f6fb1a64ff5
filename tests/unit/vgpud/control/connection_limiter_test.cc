// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/connection_limiter.h"

#include <event2/http.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace vgpud::daemon {
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
  const ConnectionLimiter::Rules rules;
  for (const StayCase& c : kCases)
    EXPECT_EQ(c.leaves, ConnectionLimiter::WhyLeave(rules, {kCame, kCame + c.since, c.has_request}, kCame + c.now,
                                                    c.full) != nullptr)
        << c.name;
}

TEST(ConnectionLimiterTest, ALimitedStayIsOverEvenWhileBusy) {
  const ConnectionLimiter::Rules rules{.stay = 30s};
  EXPECT_EQ(nullptr, ConnectionLimiter::WhyLeave(rules, {kCame, kCame, true}, kCame + 29s, false));
  EXPECT_NE(nullptr, ConnectionLimiter::WhyLeave(rules, {kCame, kCame, true}, kCame + 30s, false));
}

TEST(ConnectionLimiterTest, EachPatienceEndsToTheNanosecond) {
  const ConnectionLimiter::Rules rules{.stay = 30s};
  const auto leaves = [&](Ns came, Ns since, bool has_request, bool full) {
    const TimePoint now{1000s};
    return ConnectionLimiter::WhyLeave(rules, {now - came, now - since, has_request}, now, full) != nullptr;
  };
  const struct {
    Ns limit;
    bool of_stay, has_request, full;
  } kLimits[] = {{30s, true, true, false}, {10s, false, false, false}, {1s, false, false, true}};
  for (const auto& row : kLimits) {
    const auto after = [&](Ns time) {
      return leaves(row.of_stay ? time : 0s, row.of_stay ? 0s : time, row.has_request, row.full);
    };
    EXPECT_FALSE(after(row.limit - 1ns)) << row.limit.count();
    EXPECT_TRUE(after(row.limit)) << row.limit.count();
  }
  const ConnectionLimiter::Rules endless;
  const TimePoint now{10'000s};
  EXPECT_EQ(nullptr, ConnectionLimiter::WhyLeave(endless, {now - 9'000s, now - 300s + 1ns, true}, now, true));
  EXPECT_NE(nullptr, ConnectionLimiter::WhyLeave(endless, {now - 9'000s, now - 300s, true}, now, true));
}

// Statics end in the reverse order of their making: this one after all that the first door makes.
std::unique_ptr<ConnectionLimiter>& LastDoor() {
  static std::unique_ptr<ConnectionLimiter> door;
  return door;
}

TEST(ConnectionLimiterDeathTest, AStaticDoorEndsWithTheProcess) {
  EXPECT_EXIT(
      {
        LastDoor() = nullptr;
        static auto* const loop = new EventLoop;
        static evhttp* const http = evhttp_new(loop->base());
        LastDoor() = std::make_unique<ConnectionLimiter>(*loop, http, ConnectionLimiter::Rules{},
                                                         ConnectionLimiter::Admission{});
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ConnectionLimiterTest, TheUsualRules) {
  const ConnectionLimiter::Rules rules;
  EXPECT_EQ(0s, rules.stay);
  EXPECT_EQ(10s, rules.request);
  EXPECT_EQ(5min, rules.answer);
  EXPECT_FALSE(ConnectionLimiter::Stay{}.has_request);
}

}  // namespace
}  // namespace vgpud::daemon
