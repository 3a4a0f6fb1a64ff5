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

TEST(SpinTimeTest, IsTheUsualWaitAndAWakeUpWhileThatPays) {
  EXPECT_EQ(15us, After({}));
  EXPECT_NEAR(62e3, double(After({{100, 2us}}).count()), 100);
  EXPECT_NEAR(160e3, double(After({{100, 100us}}).count()), 100);
  EXPECT_NEAR(259e3, double(After({{100, 199us}}).count()), 100);
  EXPECT_EQ(15us, After({{100, 210us}}));
}

TEST(SpinTimeTest, LongWaitsAreSlept) {
  EXPECT_EQ(15us, After({{100, 260us + 1ns}}));
  EXPECT_EQ(15us, After({{100, 20us}, {4, 2ms}}));
  EXPECT_EQ(15us, After({{3, 50us}, {1, 1h}}));
}

TEST(SpinTimeTest, ALongOneAmongShortOnesChangesNothing) {
  const auto without = After({{100, 20us}});
  EXPECT_NEAR(80e3, double(without.count()), 100);
  EXPECT_EQ(without, After({{100, 20us}, {3, 10s}}));
  EXPECT_LT(15us, After({{100, 20us}, {9, 10s}, {1, 20us}}));
}

TEST(SpinTimeTest, AGuestsWakeUpsTakeLonger) {
  const SpinTime::Range guest{.most = 400us, .wake_up = 150us};
  EXPECT_NEAR(500e3, double(After({{100, 350us}}, guest).count()), 1000);
  EXPECT_NEAR(152e3, double(After({{100, 350us}, {100, 2us}}, guest).count()), 1000);
  EXPECT_EQ(15us, After({{100, 550us + 1ns}}, guest));
}

}  // namespace
}  // namespace vgpud::cuda
