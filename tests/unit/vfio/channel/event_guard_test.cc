// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/event_guard.h"

#include <gtest/gtest.h>

#include "tests/unit/vfio/vf_rig.h"

namespace vgpud {
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
}  // namespace vgpud
