// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/use_window.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

using std::chrono::milliseconds;

struct Looker {
  UseWindow window;
  uint64_t received_ns = 70;
  TimePoint now{Ns{1'000}};
  // So much later the VF has had so much more.
  uint32_t After(milliseconds time, milliseconds received) {
    now += time;
    received_ns += static_cast<uint64_t>(Ns{received}.count());
    return window.Look(received_ns, now);
  }
};

TEST(UseWindow, SaysWhichPartOfTheLastSecondTheVfHadTheGpu) {
  Looker looker;
  EXPECT_EQ(0u, looker.After(milliseconds{0}, milliseconds{0})) << "one look says nothing";
  EXPECT_EQ(25u, looker.After(milliseconds{100}, milliseconds{25})) << "of the time since the first look";
  for (int i = 0; i < 9; ++i) looker.After(milliseconds{100}, milliseconds{25});
  EXPECT_EQ(25u, looker.After(milliseconds{100}, milliseconds{25}));
  EXPECT_EQ(33u, looker.After(milliseconds{100}, milliseconds{100}));
  for (int i = 0; i < 8; ++i) looker.After(milliseconds{100}, milliseconds{100});
  EXPECT_EQ(100u, looker.After(milliseconds{100}, milliseconds{100}));
  for (int i = 0; i < 9; ++i) EXPECT_NE(0u, looker.After(milliseconds{100}, milliseconds{0})) << i;
  EXPECT_EQ(0u, looker.After(milliseconds{100}, milliseconds{0})) << "a second later all of it is forgotten";
}

TEST(UseWindow, LooksThatComeLateAreAboutTheTimeBetweenThem) {
  Looker looker;
  looker.After(milliseconds{0}, milliseconds{0});
  EXPECT_EQ(10u, looker.After(milliseconds{5'000}, milliseconds{500}));
  EXPECT_EQ(50u, looker.After(milliseconds{5'000}, milliseconds{2'500})) << "what is older than a second is forgotten";
}

TEST(UseWindow, IsNeverMoreThanAllAndBeginsAnewWithAnotherAccount) {
  Looker looker;
  looker.After(milliseconds{0}, milliseconds{0});
  EXPECT_EQ(100u, looker.After(milliseconds{100}, milliseconds{101}));
  looker.received_ns = 0;
  EXPECT_EQ(0u, looker.After(milliseconds{100}, milliseconds{0}));
  EXPECT_EQ(40u, looker.After(milliseconds{100}, milliseconds{40}));
  EXPECT_EQ(0u, looker.After(milliseconds{0}, milliseconds{10})) << "no time has passed";
}

}  // namespace
}  // namespace vgpud::daemon
