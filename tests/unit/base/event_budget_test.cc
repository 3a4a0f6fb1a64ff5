// SPDX-License-Identifier: Apache-2.0
#include "base/event_budget.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

TEST(EventBudget, IsParsedOrRefusedWithAReason) {
  EventBudgets budgets = kDefaultEventBudgets;
  ASSERT_TRUE(ParseEventBudget("resets=7", budgets));
  EXPECT_EQ(budgets[static_cast<size_t>(GuardedEvent::kReset)], 7u);
  ASSERT_TRUE(ParseEventBudget("doorbells=0", budgets));
  const EventBudgets before = budgets;
  for (const char* bad : {"", "=", "resets", "resets=", "reset=5", "resets=-1", "resets=5x", "resets=10000001", "=5",
                          "resets=99999999999999999999"}) {
    const auto parsed = ParseEventBudget(bad, budgets);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, std::errc::invalid_argument);
  }
  EXPECT_EQ(ParseEventBudget("reset=5", budgets).error().context,
            "event budget \"reset=5\": \"reset\" is no kind of event, there are doorbells, commands, opens, resets, "
            "bad_messages, messages, faults, interrupts, module_kib");
  EXPECT_EQ(budgets, before);
}

}  // namespace
}  // namespace vgpud
