// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/setting_text.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

TEST(SettingTextTest, EachSettingOfAGpuIsReadAgain) {
  GpuSettings gpu;
  gpu.policy = "reserve";
  gpu.options.idle = WhenIdle::kHold;
  gpu.options.group_weights[3] = 200;
  for (const std::string& field : GpuFields()) {
    const auto text = SettingText(gpu, field);
    ASSERT_TRUE(text) << field;
    GpuPatch patch;
    ASSERT_TRUE(PutSetting(field, *text, &patch)) << field;
    GpuSettings changed;
    Apply(patch, changed);
    EXPECT_EQ(text, SettingText(changed, field)) << field;
  }
  EXPECT_EQ("200", SettingText(gpu, "group_weight.3"));
}

TEST(SettingTextTest, EachSettingOfAVfIsReadAgainWithTheDefaultsThatStandForNone) {
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    const auto text = SettingText(VfView{}, row.name);
    VfPatch patch;
    ASSERT_TRUE(PutSetting(row.name, *text, &patch)) << row.name << " " << *text;
    ASSERT_EQ(1u, patch.knobs.size());
    EXPECT_EQ(row.knob, patch.knobs[0].knob);
    EXPECT_EQ(*text, std::to_string(patch.knobs[0].value));
  }
  VfPatch patch;
  ASSERT_TRUE(PutSetting("paused", "true", &patch));
  EXPECT_EQ(true, patch.paused);
  EXPECT_EQ("false", SettingText(VfView{}, "paused"));
}

TEST(SettingTextTest, WhatIsNoneIsRefusedAndChangesNothing) {
  for (const auto& [field, text] : {std::pair{"policy", "lottery"},
                                    {"idle", "sleep"},
                                    {"base_slice_us", "4ms"},
                                    {"base_slice_us", "0"},
                                    {"base_slice_us", "99999999999999999999"},
                                    {"weight", "100"},
                                    {"group_weight", "1"},
                                    {"group_weight.", "1"},
                                    {"group_weight.x", "1"},
                                    {"group_weight.64", "1"},
                                    {"group_weight.3", "0"},
                                    {"group_weight.3", "4294967396"}}) {
    GpuPatch patch;
    EXPECT_FALSE(PutSetting(field, text, &patch)) << field << " " << text;
    EXPECT_TRUE(!patch.policy && !patch.idle && patch.knobs.empty() && patch.group_weights.empty()) << field;
  }
  for (const auto& [field, text] :
       {std::pair{"weight", "0"}, {"weight", "-1"}, {"paused", "yes"}, {"policy", "strict"}}) {
    VfPatch patch;
    EXPECT_FALSE(PutSetting(field, text, &patch)) << field << " " << text;
    EXPECT_TRUE(!patch.paused && patch.knobs.empty()) << field;
  }
  EXPECT_FALSE(SettingText(GpuSettings{}, "group_weight.64"));
  EXPECT_FALSE(SettingText(GpuSettings{}, "weight"));
  EXPECT_FALSE(SettingText(VfView{}, "policy"));
}

}  // namespace
}  // namespace vgpud::daemon
