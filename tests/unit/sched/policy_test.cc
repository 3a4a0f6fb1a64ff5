// SPDX-License-Identifier: Apache-2.0
// What every policy has from its base, and the values that hold where nobody set another.
#include "sched/policy.h"

#include <gtest/gtest.h>

#include "sched/fairness.h"
#include "sched/relaxed.h"
#include "sched/strict.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{Ns{5}};

// Notes what it is told.
class NotingPolicy final : public Policy {
 public:
  std::vector<VfView> changed;
  std::vector<VfId> cleared;
  std::vector<std::pair<VfId, Ns>> owed;
  std::vector<Ns> debts;  // by VF number
  uint64_t rounds = 0;

  void Ended(const Pick&, Ns, TimePoint) override {}
  void SetOptions(const PolicyOptions&, TimePoint) override {}
  const PolicyOptions& options() const override { return options_; }
  Ns BaseSlice() const override { return options_.base_slice; }
  Ns FullSlice(const VfView&) const override { return options_.base_slice; }
  uint64_t Entitled(std::span<const VfView>, std::span<uint64_t>) const override { return 0; }
  Ns Debt(VfId vf) const override { return Raw(vf) < debts.size() ? debts[Raw(vf)] : Ns{0}; }
  bool YieldsWhenIdle() const override { return true; }
  std::optional<Pick> Choose(TimePoint) override { return std::nullopt; }
  std::vector<VfView> Changes() { return std::exchange(changed, {}); }

 protected:
  void Changed(const VfView& vf, TimePoint now) override {
    EXPECT_EQ(kNow, now);
    changed.push_back(vf);
  }
  void Clear(VfId vf) override { cleared.push_back(vf); }
  void Owe(VfId vf, Ns debt) override { owed.emplace_back(vf, debt); }
  uint64_t Rounds() const override { return rounds; }

 private:
  PolicyOptions options_;
};

VfView Vf(uint32_t vf) { return {.vf = VfId{vf}, .runnable = true}; }
VfView Absent(uint32_t vf) { return {.vf = VfId{vf}, .paused = true}; }
using Views = std::vector<VfView>;

TEST(PolicyTest, AVfThatResumesOwesWhatItOwedAndRoundsGoOn) {
  NotingPolicy policy;
  policy.rounds = 3;
  policy.Resume(Vf(2), 5ms, 40, kNow);
  EXPECT_EQ(Views{Vf(2)}, policy.Changes());
  EXPECT_EQ((std::vector<std::pair<VfId, Ns>>{{VfId{2}, 5ms}}), policy.owed);
  EXPECT_EQ(40u, policy.round());
  policy.Resume(Vf(1), 0ms, 39, kNow);
  EXPECT_EQ(1u, policy.owed.size()) << "no debt, nothing owed";
  EXPECT_EQ(40u, policy.round()) << "never back";
}

TEST(PolicyTest, OnlyWhatIsNewOrChangedIsTold) {
  NotingPolicy policy;
  policy.Next(Views{Vf(1), Vf(3)}, kNow);
  EXPECT_EQ((Views{Vf(1), Vf(3)}), policy.Changes());
  policy.Next(Views{Vf(1), Vf(3)}, kNow);
  EXPECT_EQ(Views{}, policy.Changes());
  VfView heavier = Vf(3);
  heavier.weight = 101;
  policy.Next(Views{Vf(1), heavier}, kNow);
  EXPECT_EQ(Views{heavier}, policy.Changes());
}

TEST(PolicyTest, WhoIsNotShownTakesNoPart) {
  NotingPolicy policy;
  policy.Next(Views{Vf(0), Vf(1), Vf(2), Vf(3)}, kNow);
  policy.Changes();
  policy.Next(Views{Vf(1)}, kNow);
  EXPECT_EQ((Views{Absent(0), Absent(2), Absent(3)}), policy.Changes());
  policy.Next({}, kNow);
  EXPECT_EQ(Views{Absent(1)}, policy.Changes());
}

TEST(PolicyTest, ForgettingShowsItAbsentAndEmptiesItsBooks) {
  NotingPolicy policy;
  policy.Forget(VfId{0}, kNow);
  policy.Next(Views{Vf(0), Vf(1)}, kNow);
  policy.Changes();
  policy.Forget(VfId{2}, kNow);
  EXPECT_EQ(Views{}, policy.Changes());
  EXPECT_TRUE(policy.cleared.empty());
  policy.Forget(VfId{1}, kNow);
  EXPECT_EQ(Views{Absent(1)}, policy.Changes());
  EXPECT_EQ(std::vector{VfId{1}}, policy.cleared);
}

TEST(PolicyTest, TheNextOneTakesOverViewsDebtsAndRounds) {
  NotingPolicy before, after;
  before.Next(Views{Vf(0), Vf(2)}, kNow);
  before.debts = {0ns, 0ns, 1ns};
  before.rounds = 6;
  EXPECT_EQ(6u, before.round());
  after.TakeOver(before, kNow);
  EXPECT_EQ((Views{Vf(0), Vf(2)}), after.Changes());
  EXPECT_EQ((std::vector<std::pair<VfId, Ns>>{{VfId{2}, 1ns}}), after.owed);
  EXPECT_EQ(7u, after.round());
  after.rounds = 3;
  EXPECT_EQ(10u, after.round());
}

TEST(PolicyTest, ATurnEndsByForceAndTimeAloneChangesNothingUnlessAPolicySaysOtherwise) {
  NotingPolicy policy;
  EXPECT_TRUE(policy.Forced());
  EXPECT_EQ(TimePoint::max(), policy.Wake());
  EXPECT_EQ(0u, policy.round());
  EXPECT_FALSE(RelaxedPolicy{2ms}.Forced());
  EXPECT_EQ(0ns, Policy::Pick{}.slice);
}

// As docs/scheduling.md has them.
TEST(DefaultTest, OfAVf) {
  const VfView vf;
  EXPECT_EQ(100u, vf.weight);
  EXPECT_EQ(0ns, vf.slice);
  EXPECT_FALSE(vf.runnable);
  EXPECT_FALSE(vf.paused);
  EXPECT_EQ(1, vf.priority);
  EXPECT_EQ(kNoGroup, vf.group);
  EXPECT_EQ(0u, vf.guarantee);
  EXPECT_EQ(1'000'000u, vf.limit);
  EXPECT_EQ(0ns, vf.burst);
}

TEST(DefaultTest, OfAGpu) {
  const PolicyOptions options;
  EXPECT_EQ(2ms, options.base_slice);
  EXPECT_EQ(0ns, options.max_wait);
  EXPECT_EQ(500us, options.min_slice);
  EXPECT_EQ(20ms, options.max_slice);
  EXPECT_EQ(1u, options.averaging_factor);
  EXPECT_EQ(5u, options.floor_percent);
  EXPECT_EQ(WhenIdle::kYield, options.idle);
  EXPECT_EQ(64u, options.group_weights.size());
  for (const uint32_t weight : options.group_weights) EXPECT_EQ(100u, weight);
}

TEST(DefaultTest, ThereAreFourClassesAnd64Groups) {
  EXPECT_EQ(4, kPriorities);
  EXPECT_EQ(64, kMaxGroups);
  EXPECT_EQ(64, kNoGroup);
}

TEST(DefaultTest, WhatNobodyMeasuredIsNothing) {
  const SharePart part;
  EXPECT_EQ(0u, part.key);
  EXPECT_EQ(0.0, part.received);
  EXPECT_EQ(0.0, part.error());
  EXPECT_EQ(0u, FairnessWindow::Sample{}.key);
  EXPECT_EQ(0ns, FairnessWindow(1s, 1s).Judge().length);
}

}  // namespace
}  // namespace vgpud
