// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/event_guard.h"

#include <gtest/gtest.h>

#include "tests/unit/vfio/vf_rig.h"

namespace vgpud::vfio {
namespace {

constexpr uint32_t kResets = EventGuard::Bit(GuardedEvent::kReset);
constexpr uint32_t kRate = kDefaultEventBudgets[static_cast<size_t>(GuardedEvent::kReset)];

TimePoint At(Ns since) { return TimePoint{} + since; }

void Count(EventGuard& guard, GuardedEvent event, uint32_t times) {
  for (uint32_t n = 0; n < times; ++n) guard.Count(event);
}

TEST(EventGuard, WithinTheBurstNobodyWaits) {
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
  Count(guard, GuardedEvent::kReset, kRate);
  EXPECT_FALSE(guard.Overdrawn(EventGuard::kInput));
  EXPECT_EQ(guard.Wait(EventGuard::kInput, At(Ns{0})), Ns{0});
  EXPECT_EQ(guard.throttled(GuardedEvent::kReset), 0u);
}

TEST(EventGuard, OneTooManyWaitsForOneToken) {
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
  Count(guard, GuardedEvent::kReset, kRate + 1);
  EXPECT_TRUE(guard.Overdrawn(kResets));
  const Ns wait = guard.Wait(kResets, At(Ns{0}));
  EXPECT_EQ(wait, Ns{1'000'000'000 / kRate});
  EXPECT_EQ(guard.throttled(GuardedEvent::kReset), 1u);
  EXPECT_EQ(guard.throttled_time(), wait);
  EXPECT_EQ(guard.Wait(kResets, At(wait)), Ns{0});
  EXPECT_FALSE(guard.Overdrawn(kResets));
}

TEST(EventGuard, KindsDoNotMix) {
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
  Count(guard, GuardedEvent::kReset, kRate + 1);
  EXPECT_EQ(guard.Wait(EventGuard::Bit(GuardedEvent::kInterrupt), At(Ns{0})), Ns{0});
  EXPECT_EQ(guard.Wait(EventGuard::Bit(GuardedEvent::kDoorbell), At(Ns{0})), Ns{0});
  EXPECT_GT(guard.Wait(EventGuard::kInput, At(Ns{0})), Ns{0});
}

TEST(EventGuard, RefusesWhatWouldHaveToWait) {
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
  Count(guard, GuardedEvent::kReset, kRate - 1);
  EXPECT_FALSE(guard.Refuses(GuardedEvent::kReset, At(Ns{0})));
  guard.Count(GuardedEvent::kReset);
  EXPECT_TRUE(guard.Refuses(GuardedEvent::kReset, At(Ns{0})));
  EXPECT_EQ(1u, guard.throttled(GuardedEvent::kReset));
  EXPECT_EQ(Ns{0}, guard.Wait(kResets, At(Ns{0}))) << "who was refused makes nobody wait";
  EXPECT_FALSE(guard.Refuses(GuardedEvent::kReset, At(Ns{1'000'000'000 / kRate})));
}

// However the looks are spread over time: never more than burst + rate x time served.
TEST(EventGuard, RateHoldsOverTime) {
  for (const Ns step : {Ns{1}, Ns{333'333}, Ns{7'000'001}}) {
    EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
    Ns now{0};
    uint64_t served = 0;
    while (now < Ns{3'000'000'000}) {
      const Ns wait = guard.Wait(kResets, At(now));
      if (wait > Ns{0}) {
        now += wait;
        continue;
      }
      guard.Count(GuardedEvent::kReset);
      ++served;
      now += step;
    }
    EXPECT_LE(served, kRate + 3 * kRate + 1) << step.count();
    EXPECT_GE(served, std::min<uint64_t>(kRate + 3 * kRate - 1, 3'000'000'000 / step.count())) << step.count();
  }
}

// A client that resets its device, waits for the answer and does it again at once.
TEST(EventGuard, AThousandResetsInARowEachWaitForOneTokenAtMost) {
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
  Ns now{0};
  Ns longest{0};
  for (int n = 0; n < 1000; ++n) {
    const Ns wait = guard.Overdrawn(EventGuard::kInput) ? guard.Wait(EventGuard::kInput, At(now)) : Ns{0};
    longest = std::max(longest, wait);
    now += wait + Ns{10'000};
    guard.Count(GuardedEvent::kMessage);
    guard.Count(GuardedEvent::kReset);
  }
  EXPECT_LE(longest, Ns{1'000'000'000 / kRate});
  EXPECT_LT(longest, Ns{50'000'000});
  EXPECT_GE(now, Ns{(1000 - kRate - 1) * (1'000'000'000ll / kRate)}) << "and no faster than the budget";
}

TEST(EventGuard, RestingSavesUpOneBurstAndNoMore) {
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [] {}};
  Count(guard, GuardedEvent::kReset, kRate + 1);
  EXPECT_EQ(guard.Wait(kResets, At(Ns{3'600'000'000'000})), Ns{0});
  Count(guard, GuardedEvent::kReset, kRate);
  EXPECT_EQ(guard.Wait(kResets, At(Ns{3'600'000'000'000})), Ns{0});
  guard.Count(GuardedEvent::kReset);
  EXPECT_GT(guard.Wait(kResets, At(Ns{3'600'000'000'000})), Ns{0});
}

TEST(EventGuard, StirsOncePerRest) {
  int stirred = 0;
  EventGuard guard{kDefaultEventBudgets, At(Ns{0}), [&] { ++stirred; }};
  Count(guard, GuardedEvent::kDoorbell, 10);
  EXPECT_EQ(stirred, 1);
  guard.Rest();
  EXPECT_EQ(stirred, 1);
  guard.Count(GuardedEvent::kInterrupt);
  EXPECT_EQ(stirred, 2);
}

TEST(EventGuard, NoLimit) {
  EventBudgets budgets = kDefaultEventBudgets;
  budgets[static_cast<size_t>(GuardedEvent::kReset)] = 0;
  EventGuard guard{budgets, At(Ns{0}), [] {}};
  Count(guard, GuardedEvent::kReset, 1'000'000);
  EXPECT_EQ(guard.Wait(kResets, At(Ns{0})), Ns{0});
  EXPECT_EQ(guard.count(GuardedEvent::kReset), 1'000'000u);
}

// Different for each, and each a divisor of a second.
constexpr EventBudgets kEach = {10, 20, 40, 50, 80, 100, 125, 200, 250};

TEST(EventGuard, EachKindWaitsForItsOwnBudget) {
  EXPECT_EQ(0x7fu, EventGuard::kInput) << "all but interrupts and modules";
  for (size_t e = 0; e < kGuardedEvents; ++e) {
    EventGuard guard{kEach, At(Ns{0}), [] {}};
    for (size_t other = 0; other < kGuardedEvents; ++other)
      guard.Count(static_cast<GuardedEvent>(other), kEach[other] + (other == e ? 3 : 2));
    const auto event = static_cast<GuardedEvent>(e);
    EXPECT_EQ(Ns{3'000'000'000 / kEach[e]}, guard.Wait(EventGuard::Bit(event), At(Ns{0}))) << e;
    for (size_t other = 0; other < kGuardedEvents; ++other)
      EXPECT_EQ(other == e ? 1u : 0u, guard.throttled(static_cast<GuardedEvent>(other))) << e << " " << other;
    EXPECT_EQ(kEach[e] + 3, guard.count(event));
    EXPECT_EQ(kEach[e], guard.budget(event));
  }
}

TEST(EventGuard, OfSeveralKindsTheLongestWaitCounts) {
  EventGuard guard{kEach, At(Ns{0}), [] {}};
  guard.Count(GuardedEvent::kDoorbell, 11);  // 100 ms
  guard.Count(GuardedEvent::kCommand, 23);   // 150 ms
  guard.Count(GuardedEvent::kOpen, 40);      // has used up its own, and no more
  EXPECT_EQ(Ns{150'000'000}, guard.Wait(EventGuard::kInput, At(Ns{0})));
  EXPECT_EQ(Ns{150'000'000}, guard.throttled_time());
  EXPECT_EQ(1u, guard.throttled(GuardedEvent::kDoorbell));
  EXPECT_EQ(1u, guard.throttled(GuardedEvent::kCommand));
  EXPECT_EQ(0u, guard.throttled(GuardedEvent::kOpen));
  // What has come back by then is counted in whole tokens, and the rest of the time is not lost.
  EXPECT_EQ(Ns{30'000'000}, guard.Wait(EventGuard::kInput, At(Ns{120'000'000})));
  EXPECT_EQ(Ns{180'000'000}, guard.throttled_time());
  EXPECT_EQ(1u, guard.throttled(GuardedEvent::kDoorbell)) << "it may go on";
  EXPECT_EQ(Ns{0}, guard.Wait(EventGuard::kInput, At(Ns{150'000'000})));
  EXPECT_FALSE(guard.Overdrawn(~0u));
}

TEST(EventGuard, AFullBudgetHasNoTimeSavedUpBesides) {
  EventGuard guard{kEach, At(Ns{0}), [] {}};
  guard.Count(GuardedEvent::kReset, 51);
  // 51 tokens of 20 ms, and 19 ms more: exactly full.
  EXPECT_EQ(Ns{0}, guard.Wait(kResets, At(Ns{1'039'000'000})));
  guard.Count(GuardedEvent::kReset, 51);
  EXPECT_EQ(Ns{20'000'000}, guard.Wait(kResets, At(Ns{1'039'000'000})));
}

TEST(EventGuard, TimeThatRunsBackwardsEarnsNothingAndCostsNothing) {
  EventGuard guard{kEach, At(std::chrono::seconds(5)), [] {}};
  guard.Count(GuardedEvent::kReset, 52);
  EXPECT_EQ(Ns{3'040'000'000}, guard.Wait(kResets, At(std::chrono::seconds(2))));
  EXPECT_EQ(Ns{40'000'000}, guard.Wait(kResets, At(std::chrono::seconds(5))));
}

TEST(EventGuard, WhatOthersHaveCountedIsAdded) {
  int stirred = 0;
  EventGuard guard{kEach, At(Ns{0}), [&] { ++stirred; }};
  guard.Add(GuardedEvent::kDoorbell, 1000, 3, Ns{70});
  guard.Add(GuardedEvent::kDoorbell, 1, 2, Ns{7});
  EXPECT_EQ(1001u, guard.count(GuardedEvent::kDoorbell));
  EXPECT_EQ(5u, guard.throttled(GuardedEvent::kDoorbell));
  EXPECT_EQ(Ns{77}, guard.throttled_time());
  EXPECT_EQ(1, stirred);
  EXPECT_FALSE(guard.Overdrawn(~0u)) << "they have been limited there";
}

TEST(EventGuard, WhatIsOwedIsPaidForFromNowOn) {
  EventGuard guard{kEach, At(Ns{0}), [] {}};
  constexpr uint32_t kModules = EventGuard::Bit(GuardedEvent::kModuleKib);
  guard.CountOwed(GuardedEvent::kModuleKib, 251, 2, At(std::chrono::seconds(100)));
  EXPECT_EQ(Ns{4'000'000}, guard.Wait(kModules, At(std::chrono::seconds(100))));
  guard.CountOwed(GuardedEvent::kModuleKib, 10'000, 2, At(std::chrono::seconds(100)));
  EXPECT_EQ(std::chrono::seconds(2), guard.Wait(kModules, At(std::chrono::seconds(100)))) << "no more than that";
  EXPECT_EQ(10'251u, guard.count(GuardedEvent::kModuleKib));
}

class GuardedVf : public VfRig {};

TEST_F(GuardedVf, CountsWhatTheGuestDoes) {
  function->Reset();
  guard.Rest();
  const auto before = guard.count(GuardedEvent::kReset);
  function->Reset();
  channels->Kick(3);
  EXPECT_EQ(guard.count(GuardedEvent::kReset), before + 1);
  EXPECT_EQ(guard.count(GuardedEvent::kDoorbell), 1u);
}

}  // namespace
}  // namespace vgpud::vfio
