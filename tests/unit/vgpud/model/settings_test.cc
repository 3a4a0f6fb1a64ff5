// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "sched/knobs.h"
#include "vgpud/config/config.h"
#include "vgpud/control/json.h"
#include "vgpud/model/knobs.h"

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;

constexpr Ns kCost = 100us;

Settings Of(std::string policy, std::vector<VfView> views) {
  Settings settings;
  settings.gpu.policy = std::move(policy);
  for (VfView& view : views) {
    view.vf = VfId{static_cast<uint32_t>(settings.vfs.size())};
    settings.vfs.push_back({std::string(1, static_cast<char>('a' + settings.vfs.size())), view});
  }
  return settings;
}
VfView Guaranteed(uint32_t millionths) {
  VfView view;
  view.guarantee = millionths;
  return view;
}
VfView Weighing(uint32_t weight) {
  VfView view;
  view.weight = weight;
  return view;
}
std::string Why(const Settings& before, const Settings& after, Ns cost = kCost) {
  const auto ok = CheckChange(before, after, cost);
  return ok ? "" : ok.error().context;
}

TEST(SettingsTest, AKnobThatThePolicyLacksIsNamedWithAllItsVfs) {
  const Settings reserve = Of("reserve", {Guaranteed(250'000), {}, Guaranteed(100'000)});
  Settings strict = reserve;
  strict.gpu.policy = "strict";
  EXPECT_EQ("", Why(Of("reserve", {}), reserve));
  EXPECT_EQ(
      "policy strict has no guarantee, but these VFs have one: a, c; take it away first (vgpuctl set NAME --guarantee "
      "none)",
      Why(reserve, strict));
  EXPECT_EQ("policy strict has no guarantee, wanted for VF b: change the policy to reserve first",
            Why(Of("strict", {{}, {}}), Of("strict", {{}, Guaranteed(100'000)})));
}

// One of what was given, where that is possible: not what stood there before.
TEST(SettingsTest, ARefusalKnowsTheFieldToBlame) {
  const Settings before = Of("reserve", {Guaranteed(500'000), {}});
  const auto blamed = [&](const SettingsPatch& patch) {
    Settings after = before;
    if (patch.gpu) Apply(*patch.gpu, after.gpu);
    for (const auto& [name, vf] : patch.vfs) Apply(vf, after.vfs[name == "a" ? 0 : 1].view);
    const auto ok = CheckChange(before, after, kCost);
    return ok ? "accepted" : FieldToBlame(ok.error(), patch);
  };
  const auto vf = [](std::vector<KnobValue> knobs) { return VfPatch{std::move(knobs), {}}; };
  const VfPatch heavy = vf({{Knob::kWeight, 200}});
  EXPECT_EQ("limit", blamed({{}, {{"a", vf({{Knob::kWeight, 200}, {Knob::kLimit, 250'000}})}}}));
  EXPECT_EQ("guarantee", blamed({{}, {{"a", heavy}, {"b", vf({{Knob::kWeight, 200}, {Knob::kGuarantee, 990'000}})}}}));
  EXPECT_EQ("weight", blamed({{}, {{"b", vf({{Knob::kPriority, 3}, {Knob::kWeight, 10'001}})}}}));
  EXPECT_EQ("policy", blamed({GpuPatch{"strict", {}, {{Knob::kBaseSlice, 1000}}, {}}, {}}));
  EXPECT_EQ("policy", blamed({GpuPatch{"fair", {}, {{Knob::kBaseSlice, 1000}}, {}}, {}}));
  EXPECT_EQ("idle", blamed({GpuPatch{{}, WhenIdle::kHold, {{Knob::kBaseSlice, 1000}}, {}}, {}}));
  EXPECT_EQ("max_slice_us", blamed({GpuPatch{{}, {}, {{Knob::kBaseSlice, 1000}, {Knob::kMaxSlice, 100}}, {}}, {}}));
  EXPECT_EQ("base_slice_us", blamed({GpuPatch{{}, {}, {{Knob::kMaxWait, 0}, {Knob::kBaseSlice, 10}}, {}}, {}}));
  EXPECT_EQ("accepted", blamed({{}, {{"a", heavy}}}));
}

TEST(SettingsTest, TheWholeResultIsChecked) {
  const Settings before = Of("reserve", {Guaranteed(500'000), {}});
  EXPECT_NE("", Why(before, Of("reserve", {Guaranteed(500'000), Guaranteed(500'000)})));
  EXPECT_NE("", Why(before, Of("fair", {})));
  Settings after = before;
  after.vfs[1].view.weight = 0;
  EXPECT_EQ("VF b: weight 0 is out of range: allowed is 1 to 10000", Why(before, after));
  after = before;
  after.gpu.options.min_slice = 1s;
  EXPECT_EQ("min_slice_us 1000000 is more than max_slice_us 20000", Why(before, after));
  after = before;
  after.gpu.options.idle = WhenIdle::kHold;
  EXPECT_EQ("policy reserve has no idle hold: set idle to yield, or use another policy", Why(before, after));
  after.gpu.policy = "strict";
  after.vfs[0].view.guarantee = 0;
  EXPECT_EQ("", Why(before, after));
}

TEST(SettingsTest, SwitchesCostAtLeastTheLeastCost) {
  EXPECT_NE("", Why(Of("reserve", {}), Of("reserve", {Guaranteed(kWhole)}), 0ns));
  EXPECT_EQ("", Why(Of("reserve", {}), Of("reserve", {Guaranteed(990'000)}), 0ns));
  EXPECT_NE("", Why(Of("reserve", {}), Of("reserve", {Guaranteed(990'000)}), kCost));
}

TEST(SettingsTest, GuaranteesThatWereTooMuchAlreadyForbidNothingElse) {
  const Settings before = Of("reserve", {Guaranteed(500'000), Guaranteed(480'000)});
  Settings after = before;
  after.vfs[0].view.priority = 3;
  EXPECT_EQ("", Why(before, after));
  after.vfs[0].view.guarantee = 490'000;
  EXPECT_EQ("", Why(before, after));
  after.vfs[0].view.guarantee = 510'000;
  EXPECT_NE("", Why(before, after));
  after = before;
  after.gpu.options.base_slice = 1ms;
  EXPECT_NE("", Why(before, after));
}

TEST(SettingsTest, WhatFollowsForOthersIsForeseen) {
  const Settings before = Of("strict", {Weighing(100), Weighing(100), Weighing(200)});
  Settings after = before;
  Apply(VfPatch{{{Knob::kWeight, 500}}, {}}, after.vfs[0].view);
  const Difference difference = Compare(before, after);
  EXPECT_EQ((std::vector<Change>{{"a", "weight", uint64_t{100}, uint64_t{500}},
                                 {"a", "slice_us", uint64_t{2000}, uint64_t{10'000}}}),
            difference.changes);
  EXPECT_EQ((std::vector<Change>{{"a", "share", 0.25, 0.625}, {"b", "share", 0.25, 0.125}, {"c", "share", 0.5, 0.25}}),
            difference.effects);
  EXPECT_TRUE(Compare(before, before).changes.empty());
  EXPECT_TRUE(Compare(before, before).effects.empty());
}

TEST(SettingsTest, SlicesThatWeightAndBaseSliceMakeAreBounded) {
  const Settings before = Of("strict", {{}, Weighing(10)});
  Settings after = before;
  after.gpu.options.base_slice = 900us;
  EXPECT_EQ("VF b: weight 10 with base_slice_us 900 makes 90 us: allowed is 100 to 1000000 us; change one of the two",
            Why(before, after));
  after.vfs[1].view.weight = 12;
  EXPECT_EQ("", Why(before, after));
}

TEST(SettingsTest, AGoalForTheWaitMakesSlicesFollowTheNumberOfVfs) {
  Settings before = Of("strict", {{}, {}});
  before.gpu.options.max_wait = 10ms;
  Settings after = before;
  after.vfs.push_back({"c", Weighing(100)});
  after.vfs[2].view.vf = VfId{2};
  EXPECT_EQ(5ms, ExpectedShares(before)[0].slice);
  EXPECT_EQ((Change{"a", "slice_us", uint64_t{5000}, uint64_t{3333}}), Compare(before, after).effects[0]);
  EXPECT_EQ((Change{"c", "share", 0.0, 0.333333}), Compare(before, after).effects.back());
}

TEST(SettingsTest, PausedVfsHaveNoShareAndGetItBack) {
  const Settings before = Of("strict", {{}, {}});
  Settings after = before;
  Apply(VfPatch{{}, true}, after.vfs[0].view);
  EXPECT_EQ(0, ExpectedShares(after)[0].share);
  EXPECT_EQ(1, ExpectedShares(after)[1].share);
  EXPECT_EQ((std::vector<Change>{{"a", "paused", false, true}}), Compare(before, after).changes);
}

TEST(SettingsTest, WhatAWaitAfterSleepMayBeIsThatOfThePolicy) {
  Settings settings = Of("strict", {{}, Weighing(300), {}});
  EXPECT_EQ(8ms, ExpectedShares(settings)[0].wake_bound);
  EXPECT_EQ(4ms, ExpectedShares(settings)[1].wake_bound);
  settings.vfs[0].view.wake_first = true;
  EXPECT_EQ(6ms, ExpectedShares(settings)[0].wake_bound);
  EXPECT_EQ(0ms, ExpectedShares(Of("reserve", {{}, {}}))[0].wake_bound);
}

TEST(SettingsTest, AnotherWeightEndsAFixedSliceUnlessASliceComesWithIt) {
  VfView view;
  view.slice = 5ms;
  Apply(VfPatch{{{Knob::kPriority, 2}}, {}}, view);
  EXPECT_EQ(5ms, view.slice);
  Apply(VfPatch{{{Knob::kWeight, view.weight}}, {}}, view);
  EXPECT_EQ(5ms, view.slice) << "it has that weight already";
  Apply(VfPatch{{{Knob::kWeight, 200}}, {}}, view);
  EXPECT_EQ(0ms, view.slice);
  Apply(VfPatch{{{Knob::kWeight, 300}, {Knob::kSlice, 700}}, {}}, view);
  EXPECT_EQ(700us, view.slice);
}

TEST(SettingsTest, MemoryIsComparedAsAskedFor) {
  VfPatch patch;
  patch.vram_bytes = 7;
  VfMemory memory{5, 6};
  Apply(patch, memory);
  EXPECT_EQ((VfMemory{7, 6}), memory);
  Settings before = Of("strict", {{}});
  before.vfs[0].memory = {5, 6};
  Settings after = before;
  after.vfs[0].memory = {7, 4};
  const std::string& name = before.vfs[0].name;
  EXPECT_EQ((std::vector<Change>{{name, "vram_bytes", uint64_t{5}, uint64_t{7}},
                                 {name, "host_memory_bytes", uint64_t{6}, uint64_t{4}}}),
            Compare(before, after).changes);
}

TEST(SettingsTest, WarnsOfAFixedSliceThatEndsUnasked) {
  const auto warnings = [](const VfPatch& patch) {
    Settings before = Of("strict", {{}});
    before.vfs[0].view.slice = 5ms;
    Settings after = before;
    Apply(patch, after.vfs[0].view);
    return Warnings({{}, {{before.vfs[0].name, patch}}}, before, after);
  };
  EXPECT_EQ(1u, warnings({{{Knob::kWeight, 200}}, {}}).size());
  EXPECT_EQ(0u, warnings({{{Knob::kWeight, kDefaultWeight}}, {}}).size());
  EXPECT_EQ(0u, warnings({{{Knob::kWeight, 200}, {Knob::kSlice, 0}}, {}}).size()) << "asked for";
  EXPECT_EQ(0u, warnings({{{Knob::kPriority, 2}}, {}}).size());
}

struct BadGpu {
  const char* name;
  const char* body;
  const char* field;
};
class BadGpuTest : public testing::TestWithParam<BadGpu> {};
TEST_P(BadGpuTest, IsRefusedAndNamed) {
  const auto patch = ParseGpuPatch(GetParam().body);
  ASSERT_FALSE(patch);
  EXPECT_EQ(ErrorKind::kInvalid, patch.error().kind);
  EXPECT_EQ(GetParam().field, patch.error().field);
}
INSTANTIATE_TEST_SUITE_P(, BadGpuTest,
                         testing::ValuesIn(std::vector<BadGpu>{
                             {"nothing", "{}", ""},
                             {"policy", R"({"policy": "fair"})", "policy"},
                             {"policy_number", R"({"policy": 1})", "policy"},
                             {"idle", R"({"idle": "wait"})", "idle"},
                             {"idle_number", R"({"idle": 0})", "idle"},
                             {"slice", R"({"base_slice_us": 0})", "base_slice_us"},
                             {"slice_float", R"({"base_slice_us": 1000.5})", "base_slice_us"},
                             {"averaging", R"({"averaging_factor": 61})", "averaging_factor"},
                             {"floor", R"({"floor_percent": 0})", "floor_percent"},
                             {"groups_number", R"({"group_weight": 100})", "group_weight"},
                             {"groups_empty", R"({"group_weight": {}})", "group_weight"},
                             {"group_word", R"({"group_weight": {"x": 100}})", "group_weight"},
                             {"group_64", R"({"group_weight": {"64": 100}})", "group_weight"},
                             {"group_weight_0", R"({"group_weight": {"3": 0}})", "group_weight"},
                             {"vf_knob", R"({"weight": 100})", "weight"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(GpuPatchTest, TakesEverythingAndNullIsTheDefault) {
  GpuSettings gpu;
  const auto patch = ParseGpuPatch(
      R"({"policy": "relaxed", "idle": "hold", "base_slice_us": 1000, "max_wait_us": 20000, "group_weight": {"3": 7}})");
  ASSERT_TRUE(patch);
  Apply(*patch, gpu);
  EXPECT_EQ("relaxed", gpu.policy);
  EXPECT_EQ(WhenIdle::kHold, gpu.options.idle);
  EXPECT_EQ(1ms, gpu.options.base_slice);
  EXPECT_EQ(20ms, gpu.options.max_wait);
  EXPECT_EQ(7u, gpu.options.group_weights[3]);
  const auto back = ParseGpuPatch(R"({"base_slice_us": null, "max_wait_us": 0, "group_weight": {"3": null}})");
  ASSERT_TRUE(back);
  Apply(*back, gpu);
  EXPECT_EQ(2ms, gpu.options.base_slice);
  EXPECT_EQ(0ms, gpu.options.max_wait);
  EXPECT_EQ(kDefaultWeight, gpu.options.group_weights[3]);
}

TEST(ControlKnobsTest, EveryKnobIsAnOption) {
  EXPECT_EQ(kKnobs, control::Knobs().size());
  EXPECT_EQ("slice", control::FindKnob("slice_us")->option);
  EXPECT_EQ("averaging-factor", control::FindKnob("averaging_factor")->option);
  EXPECT_EQ(control::Unit::kPart, control::FindKnob("limit")->unit);
  EXPECT_TRUE(control::FindKnob("group_weight")->per_group);
  EXPECT_EQ(nullptr, control::FindKnob("colour"));
}

TEST(Config, SmallHostsHaveOneThreadForTheSoftGpuLargeOnesHalfTheirCpus) {
  constexpr uint32_t kCpusAndThreads[][2] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {8, 4}, {31, 16}, {256, 16}};
  for (const auto [cpus, threads] : kCpusAndThreads) EXPECT_EQ(SoftGpuThreadsFor(cpus), threads) << cpus;
}

TEST(Revision, OtherSettingsHaveAnotherOneAndTheSameTheSame) {
  const VfView vf;
  std::set<uint64_t> seen = {RevisionOf("a", vf, {}), RevisionOf("b", vf, {})};
  EXPECT_EQ(RevisionOf("a", vf, {}), RevisionOf("a", VfView{}, {}));
  size_t all = 2;
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    VfView other = vf;
    SetKnob(other, row.knob, row.max != KnobOf(vf, row.knob) ? row.max : row.min);
    EXPECT_TRUE(seen.insert(RevisionOf("a", other, {})).second) << row.name;
    ++all;
  }
  VfView paused = vf;
  paused.paused = true;
  EXPECT_TRUE(seen.insert(RevisionOf("a", paused, {})).second);
  EXPECT_EQ(all + 1, seen.size());
  EXPECT_TRUE(seen.insert(RevisionOf("a", vf, {1, 0})).second);
  EXPECT_TRUE(seen.insert(RevisionOf("a", vf, {0, 1})).second);
  GpuSettings gpu, weighted;
  weighted.options.group_weights[3] = 7;
  EXPECT_NE(RevisionOf("a", gpu), RevisionOf("a", weighted));
  EXPECT_NE(RevisionOf("a", gpu), RevisionOf("b", gpu));
  EXPECT_LT(*seen.rbegin(), uint64_t{1} << 53);
}

}  // namespace
}  // namespace vgpud::daemon
