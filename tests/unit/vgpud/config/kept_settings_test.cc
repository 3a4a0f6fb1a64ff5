// SPDX-License-Identifier: Apache-2.0
#include "vgpud/config/kept_settings.h"

#include <gtest/gtest.h>

#include "sched/knobs.h"

namespace vgpud::daemon {
namespace {

using Values = std::map<std::string, std::string>;
const Values kValues = {{"gpu.policy", "strict"}, {"gpu.base_slice_us", "2000"}, {"gpu.idle", "yield"}};

TEST(KeptSettingsTest, WhatIsSaidOfOneGpuCountsMoreThanWhatIsSaidOfAll) {
  const Values all = {{"gpu.left", "served"},
                      {"gpu.left.policy", "reserve"},
                      {"gpu.leftmost.policy", "relaxed"},
                      {"gpu.policy", "strict"},
                      {"gpu.idle", "yield"}};
  EXPECT_EQ("reserve", ValuesOfGpu(all, "left")["gpu.policy"]);
  EXPECT_EQ("yield", ValuesOfGpu(all, "left")["gpu.idle"]);
  EXPECT_EQ("strict", ValuesOfGpu(all, "right")["gpu.policy"]);
}

TEST(KeptSettingsTest, WhatIsWrittenIsReadAgain) {
  const std::vector<LiveSetting> live = {{"gpu.policy", "reserve", "strict"}, {"gpu.group_weight.3", "200", ""}};
  EXPECT_EQ(live, ReadLive(WriteLive(live)));
  EXPECT_EQ("", WriteLive({}));
  EXPECT_TRUE(ReadLive("").empty());
}

TEST(KeptSettingsTest, LinesThatAreNoneAreLeftOut) {
  for (const char* text : {"\n", "a", "a\n", "\tb\tc\n", "a\t\tc\n", "a\tb\tc\td\n", "\t\t\t\t\n\n\n"})
    EXPECT_TRUE(ReadLive(text).empty()) << text;
  EXPECT_EQ(1u, ReadLive("broken\na\tb\tc\nd\te\tcut of").size());
  std::string noise;
  for (unsigned i = 0; i < 4096; ++i) noise += static_cast<char>(i * 2654435761u >> 24);
  (void)ApplyLive({}, kValues, ReadLive(noise));
}

TEST(KeptSettingsTest, WhatWasChangedHolds) {
  const WithLive with = ApplyLive(
      {}, kValues,
      {{"gpu.policy", "reserve", "strict"}, {"gpu.base_slice_us", "4000", "2000"}, {"gpu.group_weight.3", "200", ""}});
  EXPECT_TRUE(with.left_out.empty()) << with.left_out[0];
  EXPECT_EQ("reserve", with.settings.policy);
  EXPECT_EQ(4000u, KnobOf(with.settings.options, Knob::kBaseSlice));
  EXPECT_EQ(200u, with.settings.options.group_weights[3]);
}

TEST(KeptSettingsTest, WhatCannotBeHadTogetherIsNotHadAtAll) {
  const WithLive with = ApplyLive({}, kValues, {{"gpu.policy", "reserve", "strict"}, {"gpu.idle", "hold", "yield"}});
  EXPECT_EQ("strict", with.settings.policy);
  EXPECT_EQ(WhenIdle::kYield, with.settings.options.idle);
  ASSERT_EQ(1u, with.left_out.size());
}

TEST(KeptSettingsTest, FilesThatSayItAnewCountMore) {
  const WithLive with = ApplyLive({}, kValues, {{"gpu.base_slice_us", "4000", "3000"}, {"gpu.idle", "hold", "yield"}});
  EXPECT_EQ(KnobOf(DefaultOptions(), Knob::kBaseSlice), KnobOf(with.settings.options, Knob::kBaseSlice));
  EXPECT_EQ(WhenIdle::kHold, with.settings.options.idle) << "the rest holds";
  ASSERT_EQ(1u, with.left_out.size());
  EXPECT_NE(std::string::npos, with.left_out[0].find("files and flags say 2000 now")) << with.left_out[0];
}

TEST(KeptSettingsTest, WhatThisReleaseDoesNotHaveIsLeftOut) {
  const std::vector<LiveSetting> strange = {{"gpu.policy", "lottery", "strict"}, {"gpu.base_slice_us", "4ms", "2000"},
                                            {"gpu.new_knob", "1", ""},           {"gpu.group_weight.999", "1", ""},
                                            {"daemon.trace_turns", "1", ""},     {"gpu.idle", "sleep", "yield"},
                                            {"gpu.base_slice_us", "0", "2000"}};
  const WithLive with = ApplyLive({}, kValues, strange);
  EXPECT_EQ(strange.size(), with.left_out.size());
  EXPECT_EQ("strict", with.settings.policy);
}

}  // namespace
}  // namespace vgpud::daemon
