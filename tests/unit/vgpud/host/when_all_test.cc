// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/when_all.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

TEST(WhenAllTest, RunsOnceInsideTheLastAnswer) {
  int done = 0;
  const auto first = WhenAll(3, [&] { ++done; });
  const auto second = first;  // whoever answers may have a copy
  first();
  second();
  EXPECT_EQ(0, done);
  first();
  EXPECT_EQ(1, done);
}

TEST(WhenAllTest, OfNoAnswersRunsAtOnce) {
  int done = 0;
  (void)WhenAll(0, [&] { ++done; });
  EXPECT_EQ(1, done);
}

}  // namespace
}  // namespace vgpud::daemon
