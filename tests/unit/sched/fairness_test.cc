// SPDX-License-Identifier: Apache-2.0
#include "sched/fairness.h"

#include <gtest/gtest.h>

#include "tests/unit/sched/sim_worlds.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{Ns{5'000'000'000}};

TEST(JainIndexTest, IsOneForEqualsAndOneOverNForOneWhoHasAll) {
  EXPECT_DOUBLE_EQ(1.0, *JainIndex(std::vector<double>{3, 3, 3, 3}));
  EXPECT_DOUBLE_EQ(0.25, *JainIndex(std::vector<double>{0, 7, 0, 0}));
  EXPECT_DOUBLE_EQ(0.9, *JainIndex(std::vector<double>{1, 2}));
  EXPECT_FALSE(JainIndex({}));
}

TEST(JainIndexTest, CountsAnythingAboveNothing) {
  EXPECT_FALSE(JainIndex(std::vector<double>{0, 0}));
  EXPECT_DOUBLE_EQ(1.0, *JainIndex(std::vector<double>{0.5, 0.5}));
}

TEST(PartsOfSumTest, AreReceivedAndEntitledEachByItself) {
  const auto parts = PartsOfSum({{7, 0.25, 3}, {8, 0.75, 1}});
  ASSERT_TRUE(parts);
  EXPECT_EQ(7u, (*parts)[0].key);
  EXPECT_DOUBLE_EQ(0.25, (*parts)[0].received);
  EXPECT_DOUBLE_EQ(0.75, (*parts)[0].entitled);
  EXPECT_DOUBLE_EQ(-0.5, (*parts)[0].error());
  EXPECT_DOUBLE_EQ(0.5, (*parts)[1].error());
  EXPECT_TRUE(PartsOfSum({{7, 3, 0.25}, {8, 1, 0.75}}));
}

TEST(PartsOfSumTest, NeedTwoAndSomethingToShare) {
  EXPECT_FALSE(PartsOfSum({}));
  EXPECT_FALSE(PartsOfSum({{7, 1, 1}}));
  EXPECT_FALSE(PartsOfSum({{7, 0, 1}, {8, 0, 1}}));
  EXPECT_FALSE(PartsOfSum({{7, 1, 0}, {8, 1, 0}}));
}

// Drives a scheduler in virtual time and takes a snapshot every 100 ms.
struct Bed {
  SimWorlds worlds{kStart};
  StrictPolicy policy{2ms};
  Switcher switcher{worlds, policy, {}};
  FairnessWindow second{1s, 100ms};
  FairnessWindow minute{60s, 1s};
  uint64_t life_of_vf0 = 0;

  void Pass(Ns length) {
    for (Ns passed{0}; passed < length; passed += 100ms) {
      worlds.Drive(switcher, 100ms);
      std::vector<FairnessWindow::Sample> samples;
      const Account& account = switcher.AccountAt(worlds.now());
      for (uint32_t vf = 0; vf < worlds.size(); ++vf)
        samples.push_back({vf == 0 ? life_of_vf0 : vf, account.Of(VfId{vf})});
      second.Add(worlds.now(), samples);
      minute.Add(worlds.now(), samples);
    }
  }
};

TEST(FairnessWindowTest, SaysNothingBeforeItsTimeIsOver) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.Pass(1s);
  EXPECT_EQ(0ns, bed.second.Judge().length);
  bed.Pass(100ms);
  EXPECT_EQ(1s, bed.second.Judge().length);
  ASSERT_TRUE(bed.second.Judge().jain);
  bed.Pass(58s);
  EXPECT_EQ(0ns, bed.minute.Judge().length);
  bed.Pass(1s);
  EXPECT_EQ(60s, bed.minute.Judge().length);
}

TEST(FairnessWindowTest, WeightsAreWhatVfsAreEntitledTo) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(300, kEndless);
  bed.Pass(2s);
  const auto figures = bed.second.Judge();
  ASSERT_TRUE(figures.jain);
  EXPECT_GE(*figures.jain, 0.9999);
  EXPECT_DOUBLE_EQ(0.25, figures.Of(0)->entitled);
  EXPECT_NEAR(0.25, figures.Of(0)->received, 0.004);
  EXPECT_EQ(nullptr, figures.Of(17));
}

TEST(FairnessWindowTest, OverrunsShowUpInTheSecondInWhichTheyHappen) {
  Bed bed;
  bed.worlds.Add(100, kEndless).overruns = {9ms};
  bed.worlds.Add(100, kEndless);
  bed.Pass(2s);
  const auto figures = bed.second.Judge();
  ASSERT_TRUE(figures.jain);
  EXPECT_DOUBLE_EQ(figures.Of(0)->error(), -figures.Of(1)->error());
  // Debt pays the overruns back: what is left is less than one turn of them.
  EXPECT_LE(std::abs(figures.Of(0)->error()), 0.012);
}

TEST(FairnessWindowTest, OnlyVfsThatAlwaysWantedTheGpuAreJudged) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns).arrivals = {{1500ms, kEndless}};
  bed.Pass(2s);
  auto figures = bed.second.Judge();
  EXPECT_NE(nullptr, figures.Of(1));
  EXPECT_EQ(nullptr, figures.Of(2));
  EXPECT_NEAR(0.5, figures.Of(1)->entitled, 1e-9);  // among those judged
  bed.Pass(1s);
  figures = bed.second.Judge();
  ASSERT_NE(nullptr, figures.Of(2));
  EXPECT_NEAR(1.0 / 3, figures.Of(2)->entitled, 1e-9);
}

// Also one whose counters began anew, as those of a VF that was made again under the same key would.
TEST(FairnessWindowTest, WhoGotNothingHasNoShareAtAll) {
  FairnessWindow window(1s, 100ms);
  const auto account = [](uint64_t received) {
    VfAccount made;
    made.received_ns = received;
    return made;
  };
  const auto busy = [&](uint64_t key, uint64_t received, uint64_t at_ns) {
    FairnessWindow::Sample sample{key, account(received)};
    sample.account.runnable_ns = at_ns;
    sample.account.entitled_ns = at_ns / 3;
    return sample;
  };
  window.Add(kStart, std::vector{busy(0, 0, 0), busy(1, 77, 0), busy(2, 900, 0)});
  window.Add(kStart + 1s,
             std::vector{busy(0, 1'000, 1'000'000'000), busy(1, 77, 1'000'000'000), busy(2, 5, 1'000'000'000)});
  const auto figures = window.Judge();
  ASSERT_NE(nullptr, figures.Of(1));
  EXPECT_EQ(1.0, figures.Of(0)->received);
  EXPECT_EQ(0.0, figures.Of(1)->received);
  EXPECT_EQ(0.0, figures.Of(2)->received);
}

FairnessWindow::Sample At(uint64_t key, uint64_t runnable, uint64_t received, uint64_t entitled) {
  FairnessWindow::Sample sample{key, {}};
  sample.account.runnable_ns = runnable;
  sample.account.received_ns = received;
  sample.account.entitled_ns = entitled;
  return sample;
}

TEST(FairnessWindowTest, NinetyNinePercentOfTheTimeAreAllTheTime) {
  FairnessWindow window(1s, 100ms);
  window.Add(kStart, std::vector{At(0, 0, 0, 0), At(1, 0, 0, 0), At(2, 0, 0, 0)});
  window.Add(kStart + 1s, std::vector{At(0, 1'000'000'000, 5, 4), At(1, 990'000'000, 5, 4), At(2, 989'999'999, 5, 4)});
  const auto figures = window.Judge();
  EXPECT_NE(nullptr, figures.Of(1));
  EXPECT_EQ(nullptr, figures.Of(2));
  EXPECT_DOUBLE_EQ(0.5, figures.Of(0)->received);
}

TEST(FairnessWindowTest, WhoIsEntitledToNothingIsNotCompared) {
  FairnessWindow window(1s, 100ms);
  window.Add(kStart, std::vector{At(0, 0, 0, 0), At(1, 0, 0, 0), At(2, 0, 0, 0)});
  window.Add(kStart + 1s,
             std::vector{At(0, 1'000'000'000, 5, 4), At(1, 1'000'000'000, 5, 4), At(2, 1'000'000'000, 0, 0)});
  ASSERT_TRUE(window.Judge().jain);
  EXPECT_DOUBLE_EQ(1.0, *window.Judge().jain);
}

TEST(FairnessWindowTest, MovesInItsStepsAndBeginsAtTheLatestSnapshotThatIsOldEnough) {
  FairnessWindow window(1s, 100ms);
  const auto add = [&](Ns at) {
    const auto busy = static_cast<uint64_t>(at.count());
    window.Add(kStart + at, std::vector{At(0, busy, busy, busy), At(1, busy, busy, busy)});
    return window.Judge().length;
  };
  EXPECT_EQ(0ns, add(0ms));
  EXPECT_EQ(0ns, add(950ms));
  EXPECT_EQ(0ns, add(1s));            // too soon after the one before
  EXPECT_EQ(1050ms, add(1050ms));     // a step after it
  EXPECT_EQ(1050ms, add(1149999us));  // too soon
  EXPECT_EQ(1900ms, add(1900ms));
  EXPECT_EQ(1s, add(1950ms + 100ms));
}

TEST(FairnessWindowTest, OneBusyVfHasNobodyToBeFairTo) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, 0ns);
  bed.Pass(2s);
  EXPECT_EQ(1s, bed.second.Judge().length);
  EXPECT_FALSE(bed.second.Judge().jain);
  EXPECT_TRUE(bed.second.Judge().parts.empty());
}

TEST(FairnessWindowTest, ANewVfOfTheSameNumberIsAnotherVf) {
  Bed bed;
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.worlds.Add(100, kEndless);
  bed.Pass(2s);
  bed.life_of_vf0 = 1000;
  bed.Pass(500ms);
  EXPECT_EQ(nullptr, bed.second.Judge().Of(1000));
  EXPECT_NE(nullptr, bed.second.Judge().Of(1));
}

}  // namespace
}  // namespace vgpud
