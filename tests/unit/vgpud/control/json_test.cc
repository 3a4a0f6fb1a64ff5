// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

TEST(ControlJsonTest, SpecTakesEveryFieldAndHasDefaults) {
  const auto full = ParseVfSpec(R"({"name": "a-1", "weight": 300, "slice_us": 2000, "vram_bytes": 1048576})");
  ASSERT_TRUE(full);
  EXPECT_EQ("a-1", full->name);
  EXPECT_EQ(300u, full->view.weight);
  EXPECT_EQ(std::chrono::milliseconds{2}, full->view.slice);
  EXPECT_EQ(1048576u, full->vram_bytes);
  const auto least = ParseVfSpec(R"({"name": "0"})");
  ASSERT_TRUE(least);
  EXPECT_EQ(100u, least->view.weight);
  EXPECT_EQ(Ns{0}, least->view.slice);
  EXPECT_EQ(control::kDefaultVramBytes, least->vram_bytes);
}

struct BadSpec {
  const char* name;
  const char* body;
  const char* field;
};
class BadSpecTest : public testing::TestWithParam<BadSpec> {};
TEST_P(BadSpecTest, IsRefusedAndNamed) {
  const auto spec = ParseVfSpec(GetParam().body);
  ASSERT_FALSE(spec);
  EXPECT_EQ(ErrorKind::kInvalid, spec.error().kind);
  EXPECT_EQ(GetParam().field, spec.error().field);
  EXPECT_NE("", spec.error().error);
}
INSTANTIATE_TEST_SUITE_P(, BadSpecTest,
                         testing::ValuesIn(std::vector<BadSpec>{
                             {"empty", "", ""},
                             {"no_json", "name=a", ""},
                             {"trailing", R"({"name":"a"} x)", ""},
                             {"array", R"(["a"])", ""},
                             {"no_name", "{}", "name"},
                             {"name_number", R"({"name": 5})", "name"},
                             {"name_empty", R"({"name": ""})", "name"},
                             {"name_upper", R"({"name": "A"})", "name"},
                             {"name_dash_first", R"({"name": "-a"})", "name"},
                             {"name_path", R"({"name": "../a"})", "name"},
                             {"name_nul", "{\"name\": \"a\\u0000b\"}", "name"},
                             {"name_long", R"({"name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})", "name"},
                             {"weight_zero", R"({"name": "a", "weight": 0})", "weight"},
                             {"weight_negative", R"({"name": "a", "weight": -1})", "weight"},
                             {"weight_large", R"({"name": "a", "weight": 10001})", "weight"},
                             {"weight_wraps", R"({"name": "a", "weight": 4294967396})", "weight"},
                             {"weight_float", R"({"name": "a", "weight": 100.5})", "weight"},
                             {"weight_text", R"({"name": "a", "weight": "100"})", "weight"},
                             {"weight_beyond_64_bit", R"({"name": "a", "weight": 99999999999999999999})", "weight"},
                             {"slice_short", R"({"name": "a", "slice_us": 99})", "slice_us"},
                             {"slice_zero", R"({"name": "a", "slice_us": 0})", "slice_us"},
                             {"priority_4", R"({"name": "a", "priority": 4})", "priority"},
                             {"group_64", R"({"name": "a", "group": 64})", "group"},
                             {"guarantee_over_1", R"({"name": "a", "guarantee": 1.01})", "guarantee"},
                             {"guarantee_negative", R"({"name": "a", "guarantee": -0.5})", "guarantee"},
                             {"guarantee_tiny", R"({"name": "a", "guarantee": 1e-9})", "guarantee"},
                             {"guarantee_text", R"({"name": "a", "guarantee": "25%"})", "guarantee"},
                             {"guarantee_huge", R"({"name": "a", "guarantee": 1e300})", "guarantee"},
                             {"limit_zero", R"({"name": "a", "limit": 0})", "limit"},
                             {"burst_long", R"({"name": "a", "burst_us": 1000001})", "burst_us"},
                             {"knob_of_the_gpu", R"({"name": "a", "base_slice_us": 1000})", "base_slice_us"},
                             {"slice_long", R"({"name": "a", "slice_us": 1000001})", "slice_us"},
                             {"vram_small", R"({"name": "a", "vram_bytes": 1048575})", "vram_bytes"},
                             {"vram_null", R"({"name": "a", "vram_bytes": null})", "vram_bytes"},
                             {"unknown", R"({"name": "a", "colour": "red"})", "colour"},
                             {"twice", R"({"name": "a", "weight": 1, "weight": 2})", "weight"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(ControlJsonTest, SettingsTakeTheGpuAndSeveralVfs) {
  const auto patch = ParseSettingsPatch(
      R"({"gpu": {"policy": "reserve"}, "vfs": {"a": {"guarantee": 0.25, "limit": 0.75}, "b": {"weight": null}}})");
  ASSERT_TRUE(patch);
  EXPECT_EQ("reserve", patch->gpu->policy);
  ASSERT_EQ(2u, patch->vfs.size());
  EXPECT_EQ("a", patch->vfs[0].first);
  EXPECT_EQ(2u, patch->vfs[0].second.knobs.size());
  EXPECT_EQ("b", patch->vfs[1].first);
  EXPECT_EQ(100u, patch->vfs[1].second.knobs.at(0).value);
}

class BadSettingsTest : public testing::TestWithParam<BadSpec> {};
TEST_P(BadSettingsTest, AreRefusedAndNamed) {
  const auto patch = ParseSettingsPatch(GetParam().body);
  ASSERT_FALSE(patch);
  EXPECT_EQ(ErrorKind::kInvalid, patch.error().kind);
  EXPECT_EQ(GetParam().field, patch.error().field) << patch.error().error;
}
INSTANTIATE_TEST_SUITE_P(, BadSettingsTest,
                         testing::ValuesIn(std::vector<BadSpec>{
                             {"nothing", "{}", ""},
                             {"no_vfs", R"({"vfs": {}})", "vfs"},
                             {"vfs_list", R"({"vfs": [{"name": "a"}]})", "vfs"},
                             {"vf_number", R"({"vfs": {"a": 5}})", "vfs"},
                             {"vf_empty", R"({"vfs": {"a": {}}})", ""},
                             {"vf_unknown_knob", R"({"vfs": {"a": {"weight": 1}, "b": {"colour": 1}}})", "colour"},
                             {"vf_out_of_range", R"({"vfs": {"a": {"weight": 1}, "b": {"weight": 0}}})", "weight"},
                             {"vf_twice", R"({"vfs": {"a": {"weight": 1}, "a": {"weight": 2}}})", "a"},
                             {"knob_twice", R"({"vfs": {"a": {"weight": 1, "weight": 2}}})", "weight"},
                             {"gpu_null", R"({"gpu": null})", "gpu"},
                             {"gpu_knob_of_a_vf", R"({"gpu": {"weight": 100}})", "weight"},
                             {"unknown", R"({"weight": 100})", "weight"},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

// The same key in two objects is not twice.
TEST(ControlJsonTest, SettingsMayNameAKnobOncePerVf) {
  EXPECT_TRUE(ParseSettingsPatch(R"({"vfs": {"a": {"weight": 1}, "b": {"weight": 2}, "weight": {"weight": 3}}})"));
}

TEST(ControlJsonTest, TheLimitsThemselvesAreAccepted) {
  for (const char* body : {R"({"name": "a", "weight": 1})", R"({"name": "a", "weight": 10000})",
                           R"({"name": "a", "slice_us": 100})", R"({"name": "a", "slice_us": 1000000})",
                           R"({"name": "a", "vram_bytes": 1048576})", R"({"name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})"})
    EXPECT_TRUE(ParseVfSpec(body)) << body;
}

TEST(ControlJsonTest, PatchNeedsSomethingToChange) {
  EXPECT_FALSE(ParseVfPatch("{}"));
  EXPECT_FALSE(ParseVfPatch(R"({"name": "b"})"));
  VfView view{VfId{0}, 100, std::chrono::milliseconds{2}};
  const auto weight = ParseVfPatch(R"({"weight": 5})");
  ASSERT_TRUE(weight);
  Apply(*weight, view);
  EXPECT_EQ((VfView{VfId{0}, 5, Ns{0}}), view);
  view.slice = std::chrono::milliseconds{3};
  const auto automatic = ParseVfPatch(R"({"slice_us": null})");
  ASSERT_TRUE(automatic);
  Apply(*automatic, view);
  EXPECT_EQ((VfView{VfId{0}, 5, Ns{0}}), view);
}

TEST(ControlJsonTest, ErrorsSurviveHostileText) {
  const auto spec = ParseVfSpec("{\"name\": \"a\", \"\xff\xfe\": 1}");
  ASSERT_FALSE(spec);
  EXPECT_NE(std::string::npos, ToJson(spec.error()).find("\"error\""));
}

TEST(ControlJsonTest, DeepNestingIsRefused) { EXPECT_FALSE(ParseVfSpec(std::string(60'000, '['))); }

TEST(GpuPatchTest, AGroupHasOneNameAndOneWeight) {
  EXPECT_TRUE(ParseGpuPatch(R"({"group_weight": {"0": 100, "3": 200}})"));
  for (const char* bad : {R"({"group_weight": {"3": 100, "3": 200}})", R"({"group_weight": {"03": 300}})",
                          R"({"group_weight": {"00": 1}})"})
    EXPECT_FALSE(ParseGpuPatch(bad)) << bad;
}

TEST(ControlJsonTest, DeepNestingIsRefusedBeforeItIsParsed) {
  for (const size_t depth : {17u, 1'000u, 32'000u}) {
    const auto spec = ParseVfSpec("{\"name\":" + std::string(depth, '[') + std::string(depth, ']') + "}");
    ASSERT_FALSE(spec);
    EXPECT_NE(std::string::npos, spec.error().error.find("levels deep")) << spec.error().error;
  }
  EXPECT_NE(std::string::npos, ParseVfSpec("{\"\\\"[[[[[[[[[[[[[[[[[[[[\": 1}").error().error.find("unknown field"))
      << "brackets in text are no levels";
}

TEST(ControlJsonTest, AnErrorDoesNotRepeatALongRequest) {
  const auto spec = ParseVfSpec("{\"name\": " + std::string(60'000, 'x'));
  ASSERT_FALSE(spec);
  EXPECT_LT(spec.error().error.size(), 300u);
}

TEST(ReplyTest, ErrorsHaveTheirStatusAndTheirField) {
  using Json = nlohmann::json;
  const std::pair<ErrorKind, int> kStatuses[] = {{ErrorKind::kInvalid, 400},    {ErrorKind::kTooLarge, 413},
                                                 {ErrorKind::kNotFound, 404},   {ErrorKind::kWrongMethod, 405},
                                                 {ErrorKind::kConflict, 409},   {ErrorKind::kFailed, 500},
                                                 {ErrorKind::kUnavailable, 503}};
  for (const auto& [kind, status] : kStatuses) EXPECT_EQ(status, HttpStatus(kind));
  Json said{{"apiVersion", "vgpud/v1"}, {"error", "e"}};
  EXPECT_EQ(said, Json::parse(ToJson(ApiError{ErrorKind::kInvalid, "e", ""})));
  said["field"] = "f";
  EXPECT_EQ(said, Json::parse(ToJson(ApiError{ErrorKind::kInvalid, "e", "f"})));
}

}  // namespace
}  // namespace vgpud::daemon
