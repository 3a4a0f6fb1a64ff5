// SPDX-License-Identifier: Apache-2.0
#include "sched/registry.h"

#include <gtest/gtest.h>

#include <functional>

#include "sched/knobs.h"

namespace vgpud {
namespace {

using namespace std::chrono_literals;

const PolicyRow& Row(std::string_view name) { return **FindPolicy(name); }

TEST(RegistryTest, EveryPolicyIsMadeByItsNameAndGivesTurns) {
  for (const PolicyRow& row : Policies()) {
    const auto policy = MakePolicy(row.name, {});
    ASSERT_TRUE(policy.has_value()) << row.name;
    const std::vector<VfView> vfs = {{VfId{3}, 100, Ns{0}, true}};
    EXPECT_EQ((Policy::Pick{VfId{3}, 2ms}), (*policy)->Next(vfs, TimePoint{})) << row.name;
  }
  EXPECT_EQ(kDefaultPolicy, Policies()[0].name);
}

TEST(RegistryTest, AnUnknownPolicyIsAnsweredWithTheKnownOnes) {
  const auto policy = MakePolicy("fair", {});
  ASSERT_FALSE(policy.has_value());
  EXPECT_EQ("policy \"fair\" does not exist: there are strict, reserve, relaxed", policy.error().context);
}

struct OptionCase {
  const char* name;
  std::function<void(PolicyOptions&)> change;
  const char* error;  // "" = accepted
};
class OptionTest : public testing::TestWithParam<OptionCase> {};

TEST_P(OptionTest, IsCheckedAgainstItsRange) {
  PolicyOptions options;
  GetParam().change(options);
  const auto ok = CheckOptions(options);
  EXPECT_EQ(GetParam().error, ok ? std::string() : ok.error().context);
}
INSTANTIATE_TEST_SUITE_P(, OptionTest,
                         testing::ValuesIn(std::vector<OptionCase>{
                             {"defaults", [](PolicyOptions&) {}, ""},
                             {"averaging_60", [](PolicyOptions& o) { o.averaging_factor = 60; }, ""},
                             {"averaging_0", [](PolicyOptions& o) { o.averaging_factor = 0; },
                              "averaging_factor 0 is out of range: allowed is 1 to 60"},
                             {"averaging_61", [](PolicyOptions& o) { o.averaging_factor = 61; },
                              "averaging_factor 61 is out of range: allowed is 1 to 60"},
                             {"slice_0", [](PolicyOptions& o) { o.base_slice = 0ns; },
                              "base_slice_us 0 is out of range: allowed is 100 to 1000000 us"},
                             {"max_wait_short", [](PolicyOptions& o) { o.max_wait = 1us; },
                              "max_wait_us 1 is out of range: allowed is 0 or 1000 to 10000000 us"},
                             {"floor_0", [](PolicyOptions& o) { o.floor_percent = 0; },
                              "floor_percent 0 is out of range: allowed is 1 to 25 %"},
                             {"group_weight_0", [](PolicyOptions& o) { o.group_weights[9] = 0; },
                              "group_weight 0 is out of range: allowed is 1 to 10000"},
                             {"min_over_max", [](PolicyOptions& o) { o.min_slice = 30ms; },
                              "min_slice_us 30000 is more than max_slice_us 20000"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

struct SliceCase {
  const char* name;
  std::function<void(VfView&, PolicyOptions&)> change;
  const char* error;
};
class SliceTest : public testing::TestWithParam<SliceCase> {};

TEST_P(SliceTest, ByWeightIsBoundedToo) {
  VfView vf;
  PolicyOptions options;
  GetParam().change(vf, options);
  const auto ok = CheckSlice("alice", vf, options);
  EXPECT_EQ(GetParam().error, ok ? std::string() : ok.error().context);
}
INSTANTIATE_TEST_SUITE_P(
    , SliceTest,
    testing::ValuesIn(std::vector<SliceCase>{
        {"defaults", [](VfView&, PolicyOptions&) {}, ""},
        {"weight_5", [](VfView& v, PolicyOptions&) { v.weight = 5; }, ""},
        {"weight_4", [](VfView& v, PolicyOptions&) { v.weight = 4; },
         "VF alice: weight 4 with base_slice_us 2000 makes 80 us: allowed is 100 to 1000000 us; change one of the two"},
        {"weight_4_but_fixed",
         [](VfView& v, PolicyOptions&) {
           v.weight = 4;
           v.slice = 1ms;
         },
         ""},
        {"a_second",
         [](VfView& v, PolicyOptions& o) {
           v.weight = 10'000;
           o.base_slice = 10ms;
         },
         ""},
        {"over_a_second",
         [](VfView& v, PolicyOptions& o) {
           v.weight = 10'000;
           o.base_slice = 11ms;
         },
         "VF alice: weight 10000 with base_slice_us 11000 makes 1100000 us: allowed is 100 to 1000000 us; change one "
         "of the two"},
        {"goal_low",
         [](VfView& v, PolicyOptions& o) {
           v.weight = 10;
           o.max_wait = 20ms;
         },
         "VF alice: weight 10 with min_slice_us 500 makes 50 us: allowed is 100 to 1000000 us; change one of the two"},
        {"goal_high",
         [](VfView& v, PolicyOptions& o) {
           v.weight = 10'000;
           o.max_wait = 20ms;
         },
         "VF alice: weight 10000 with max_slice_us 20000 makes 2000000 us: allowed is 100 to 1000000 us; change one of "
         "the two"},
        {"group",
         [](VfView& v, PolicyOptions& o) {
           v.group = 3;
           o.group_weights[3] = 2;
         },
         "VF alice: group_weight 3: 2 with base_slice_us 2000 makes 40 us: allowed is 100 to 1000000 us; change one of "
         "the two"},
        {"other_group",
         [](VfView& v, PolicyOptions& o) {
           v.group = 4;
           o.group_weights[3] = 2;
         },
         ""},
    }),
    [](const auto& p) { return std::string(p.param.name); });

struct VfCase {
  const char* name;
  const char* policy;
  std::function<void(VfView&)> change;
  const char* error;
};
class VfKnobTest : public testing::TestWithParam<VfCase> {};

TEST_P(VfKnobTest, IsCheckedAgainstItsRangeAndItsPolicy) {
  VfView vf;
  GetParam().change(vf);
  const auto ok = CheckVf(Row(GetParam().policy), "alice", vf);
  EXPECT_EQ(GetParam().error, ok ? std::string() : ok.error().context);
}
INSTANTIATE_TEST_SUITE_P(, VfKnobTest,
                         testing::ValuesIn(std::vector<VfCase>{
                             {"defaults", "strict", [](VfView&) {}, ""},
                             {"weight_0", "strict", [](VfView& v) { v.weight = 0; },
                              "VF alice: weight 0 is out of range: allowed is 1 to 10000"},
                             {"slice_50", "strict", [](VfView& v) { v.slice = 50us; },
                              "VF alice: slice_us 50 is out of range: allowed is 100 to 1000000 us"},
                             {"priority_4", "strict", [](VfView& v) { v.priority = 4; },
                              "VF alice: priority 4 is out of range: allowed is 0 to 3"},
                             {"group_65", "strict", [](VfView& v) { v.group = 65; },
                              "VF alice: group 65 is out of range: allowed is 0 to 63"},
                             {"guarantee_needs_reserve", "strict", [](VfView& v) { v.guarantee = 250'000; },
                              "VF alice: policy strict has no guarantee: use policy reserve, or leave it out"},
                             {"limit_needs_reserve", "relaxed", [](VfView& v) { v.limit = 250'000; },
                              "VF alice: policy relaxed has no limit: use policy reserve, or leave it out"},
                             {"reserve_takes_both", "reserve",
                              [](VfView& v) {
                                v.guarantee = 250'000;
                                v.limit = 750'000;
                              },
                              ""},
                             {"limit_0", "reserve", [](VfView& v) { v.limit = 0; },
                              "VF alice: limit 0 is out of range: allowed is 0.001 to 1 of the GPU"},
                             {"guarantee_over_limit", "reserve",
                              [](VfView& v) {
                                v.guarantee = 500'000;
                                v.limit = 250'000;
                              },
                              "VF alice: guarantee 0.500 is more than limit 0.250"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(KnobTest, EachIsReadAndWrittenByItsRowAndNothingElseChanges) {
  for (const KnobRow& row : Knobs()) {
    if (row.knob == Knob::kGroupWeight) continue;
    VfView vf;
    PolicyOptions options;
    row.per_vf ? SetKnob(vf, row.knob, row.max) : SetKnob(options, row.knob, row.max);
    for (const KnobRow& other : Knobs()) {
      if (other.knob == Knob::kGroupWeight || other.per_vf != row.per_vf) continue;
      const uint64_t now = row.per_vf ? KnobOf(vf, other.knob) : KnobOf(options, other.knob);
      const uint64_t usual = row.per_vf ? KnobOf(VfView{}, other.knob) : KnobOf(PolicyOptions{}, other.knob);
      EXPECT_EQ(other.knob == row.knob ? row.max : usual, now) << row.name << " " << other.name;
    }
  }
}

// As docs/scheduling.md has them.
TEST(KnobTest, RangesEndWhereTheySay) {
  struct Range {
    Knob knob;
    uint64_t least, most;
    bool or_0;
  };
  for (const Range& range : {
           Range{Knob::kWeight, 1, 10'000, false},
           {Knob::kSlice, 100, 1'000'000, false},
           {Knob::kPriority, 0, 3, false},
           {Knob::kGroup, 0, 63, false},
           {Knob::kGuarantee, 1'000, 1'000'000, true},
           {Knob::kLimit, 1'000, 1'000'000, false},
           {Knob::kBurst, 0, 1'000'000, false},
           {Knob::kBaseSlice, 100, 1'000'000, false},
           {Knob::kMaxWait, 1'000, 10'000'000, true},
           {Knob::kMinSlice, 100, 1'000'000, false},
           {Knob::kMaxSlice, 100, 1'000'000, false},
           {Knob::kAveragingFactor, 1, 60, false},
           {Knob::kFloorPercent, 1, 25, false},
           {Knob::kGroupWeight, 1, 10'000, false},
       }) {
    const std::string_view name = RowOf(range.knob).name;
    EXPECT_TRUE(CheckKnob(range.knob, range.least)) << name;
    EXPECT_TRUE(CheckKnob(range.knob, range.most)) << name;
    EXPECT_FALSE(CheckKnob(range.knob, range.most + 1)) << name;
    if (range.least == 0) continue;
    EXPECT_EQ(range.or_0, CheckKnob(range.knob, 0).has_value()) << name;
    EXPECT_FALSE(range.least > 1 && CheckKnob(range.knob, range.least - 1)) << name;
  }
}

TEST(KnobTest, PartsAreWrittenAsPeopleDo) {
  EXPECT_EQ("guarantee 1.5 is out of range: allowed is 0 or 0.001 to 1 of the GPU",
            CheckKnob(Knob::kGuarantee, 1'500'000).error().context);
  EXPECT_TRUE(CheckKnob(Knob::kGuarantee, 0));
  EXPECT_FALSE(CheckKnob(Knob::kSlice, 0));
}

TEST(AdmissionTest, GuaranteesMustFitIntoWhatSwitchesLeave) {
  std::vector<VfView> vfs(4);
  for (VfView& vf : vfs) vf.guarantee = 240'000;
  EXPECT_TRUE(CheckGuarantees(vfs, {}, 50us).has_value());
  EXPECT_FALSE(CheckGuarantees(vfs, {}, 100us).has_value());
  EXPECT_EQ(
      "guarantees add up to 0.960, but 0.952 is left when a switch of 100 us follows each slice of 2000 us: lower a "
      "guarantee or make slices longer",
      CheckGuarantees(vfs, {}, 100us).error().context);
}

TEST(AdmissionTest, TheShortestSliceThatCanHappenCounts) {
  std::vector<VfView> vfs(4);
  for (VfView& vf : vfs) vf.guarantee = 240'000;
  vfs[2].weight = 50;
  EXPECT_FALSE(CheckGuarantees(vfs, {}, 50us).has_value());
  vfs[2].weight = 100;
  PolicyOptions options;
  options.max_wait = 10ms;
  EXPECT_FALSE(CheckGuarantees(vfs, options, 50us).has_value());
}

TEST(AdmissionTest, MoreThanTheWholeIsNeverAccepted) {
  std::vector<VfView> vfs(3);
  for (VfView& vf : vfs) vf.guarantee = 333'333;
  EXPECT_TRUE(CheckGuarantees(vfs, {}, 0ns).has_value());
  vfs[0].guarantee += 2;
  EXPECT_FALSE(CheckGuarantees(vfs, {}, 0ns).has_value());
  EXPECT_TRUE(CheckGuarantees({}, {}, 1s).has_value());
}

}  // namespace
}  // namespace vgpud
