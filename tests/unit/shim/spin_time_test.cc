// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/spin_time.h"

#include <gtest/gtest.h>

namespace vgpud::cuda {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds After(std::initializer_list<std::pair<int, std::chrono::nanoseconds>> waits,
                               const SpinTime::Range& range = {}) {
  SpinTime spin(range);
  for (const auto& [times, wait] : waits)
    for (int i = 0; i < times; ++i) spin.Waited(wait);
  return spin.limit();
}

TEST(SpinTimeTest, IsTwiceTheUsualWaitWhileThatIsShort) {
  EXPECT_EQ(15us, After({}));
  EXPECT_EQ(15us, After({{100, 2us}}));
  EXPECT_NEAR(50e3, double(After({{100, 25us}}).count()), 100);
  EXPECT_EQ(60us, After({{100, 45us}}));
  EXPECT_EQ(60us, After({{100, 120us}}));
}

TEST(SpinTimeTest, LongWaitsAreSlept) {
  EXPECT_EQ(15us, After({{100, 120us + 1ns}}));
  EXPECT_EQ(15us, After({{100, 20us}, {4, 2ms}}));
  EXPECT_EQ(15us, After({{3, 50us}, {1, 1h}}));
}

TEST(SpinTimeTest, ALongOneAmongShortOnesChangesNothing) {
  const auto without = After({{100, 20us}});
  EXPECT_NEAR(40e3, double(without.count()), 100);
  EXPECT_EQ(without, After({{100, 20us}, {3, 10s}}));
  EXPECT_LT(15us, After({{100, 20us}, {9, 10s}, {1, 20us}}));
}

TEST(SpinTimeTest, AGuestSpinsForAsLongAsItsWakeUpsTake) {
  const SpinTime::Range guest{.most = 400us, .with_sleep = 800us};
  EXPECT_EQ(400us, After({{100, 350us}}, guest));
  EXPECT_EQ(15us, After({{100, 350us}, {100, 2us}}, guest));
  EXPECT_EQ(15us, After({{100, 800us + 1ns}}, guest));
}

}  // namespace
}  // namespace vgpud::cuda
