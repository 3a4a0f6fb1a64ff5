// SPDX-License-Identifier: Apache-2.0
// Profiles: the built-in ones, own ones key by key, and what a VF gets of them.
#include "vgpud/model/profiles.h"

#include <gtest/gtest.h>

#include "sched/knobs.h"
#include "vgpud/control/json.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

Profiles With(const std::vector<std::string>& settings) {
  Profiles profiles = BuiltInProfiles(8 * kGiB);
  for (const std::string& setting : settings) EXPECT_TRUE(SetInProfile(&profiles, setting)) << setting;
  return profiles;
}

TEST(Profiles, TheBuiltInOnesArePartsOfTheGpu) {
  const Profiles profiles = BuiltInProfiles(16 * kGiB);
  ASSERT_EQ(4u, profiles.size());
  const struct {
    const char* name;
    uint64_t vram;
    uint64_t weight;
  } rows[] = {{"1/1", 16 * kGiB, 200}, {"1/2", 8 * kGiB, 100}, {"1/4", 4 * kGiB, 50}, {"1/8", 2 * kGiB, 25}};
  for (size_t i = 0; i < profiles.size(); ++i) {
    const auto spec = ParseVfSpec(std::string(R"({"name": "a", "profile": ")") + rows[i].name + "\"}", profiles);
    ASSERT_TRUE(spec) << spec.error().error;
    EXPECT_EQ(rows[i].name, spec->profile);
    EXPECT_EQ(rows[i].vram, spec->vram_bytes);
    EXPECT_EQ(rows[i].weight, spec->view.weight);
    EXPECT_TRUE(profiles[i].built_in);
    EXPECT_TRUE(CheckSlice("a", spec->view, DefaultOptions())) << "its slice is one that the policy takes";
  }
}

TEST(Profiles, EachKeyIsWhatAVfGetsUnlessItIsSaidOtherwise) {
  const Profiles profiles =
      With({"small.vram=1.5GiB", "small.host_memory=300MiB", "small.weight=50", "small.guarantee=0.1",
            "small.limit=75%", "small.slice_us=3000", "small.priority=2", "small.weight=60"});
  const auto spec = ParseVfSpec(R"({"name": "a", "profile": "small"})", profiles);
  ASSERT_TRUE(spec) << spec.error().error;
  EXPECT_EQ(kGiB * 3 / 2, spec->vram_bytes);
  EXPECT_EQ(uint64_t{300} << 20, spec->host_memory_bytes);
  EXPECT_EQ(60u, spec->view.weight) << "the last counts";
  EXPECT_EQ(100'000u, KnobOf(spec->view, Knob::kGuarantee));
  EXPECT_EQ(750'000u, KnobOf(spec->view, Knob::kLimit));
  EXPECT_EQ(3000u, KnobOf(spec->view, Knob::kSlice));
  EXPECT_EQ(2u, KnobOf(spec->view, Knob::kPriority));
  const auto other = ParseVfSpec(
      R"({"name": "a", "profile": "small", "weight": 7, "vram_bytes": 1073741824, "slice_us": null})", profiles);
  ASSERT_TRUE(other);
  EXPECT_EQ(7u, other->view.weight);
  EXPECT_EQ(kGiB, other->vram_bytes);
  EXPECT_EQ(0u, KnobOf(other->view, Knob::kSlice)) << "null is the default, not the profile's";
  EXPECT_EQ(uint64_t{300} << 20, other->host_memory_bytes);
  const auto most = ParseVfSpec(R"({"name": "a", "profile": "empty"})", With({"empty.weight=100"}));
  EXPECT_EQ(kGiB, most->vram_bytes) << "what it does not say is as without a profile";
  EXPECT_EQ(768u << 20, most->host_memory_bytes);
}

TEST(Profiles, OneThatDoesNotExistIsRefusedWithTheNearest) {
  const Profiles profiles = With({"render.weight=300"});
  const auto why = [&](const char* body) { return ParseVfSpec(body, profiles).error(); };
  EXPECT_EQ("there is no profile \"rendr\": did you mean render?", why(R"({"name": "a", "profile": "rendr"})").error);
  EXPECT_EQ("profile", why(R"({"name": "a", "profile": "rendr"})").field);
  EXPECT_EQ("there is no profile \"something\": there are 1/1, 1/2, 1/4, 1/8, render",
            why(R"({"name": "a", "profile": "something"})").error);
  EXPECT_EQ("profile must be text, not 5", why(R"({"name": "a", "profile": 5})").error);
}

struct Wrong {
  const char* setting;
  const char* why;
};
class WrongProfile : public testing::TestWithParam<Wrong> {};
TEST_P(WrongProfile, IsRefusedAndChangesNothing) {
  Profiles profiles = With({"small.weight=50"});
  const auto set = SetInProfile(&profiles, GetParam().setting);
  ASSERT_FALSE(set);
  const std::string why = GetParam().why;
  EXPECT_EQ(why, set.error().context.substr(0, why.size()));
  ASSERT_EQ(5u, profiles.size());
  EXPECT_EQ(1u, profiles.back().knobs.size());
  EXPECT_FALSE(profiles.back().vram_bytes);
}
INSTANTIATE_TEST_SUITE_P(
    , WrongProfile,
    testing::Values(Wrong{"small", "\"small\" is not NAME.KEY=VALUE"}, Wrong{"small.weight", "\"small.weight\" is not"},
                    Wrong{"small=3", "\"small=3\" is not NAME.KEY=VALUE"},
                    Wrong{"1/2.weight=3", "profile name \"1/2\" is not usable"},
                    Wrong{".weight=3", "profile name \"\" is not usable"},
                    Wrong{"small.wieght=3", "profile small has no key \"wieght\": did you mean weight?"},
                    Wrong{"small.weight=3x", "weight \"3x\" is not a number"},
                    Wrong{"small.weight=", "weight \"\" is not a number"},
                    Wrong{"small.weight=-1", "weight \"-1\" is not a number"},
                    Wrong{"small.weight=99999999", "weight 99999999 is out of range: allowed is "},
                    Wrong{"small.limit=nan", "limit \"nan\" is not a part of the GPU"},
                    Wrong{"small.limit=150%", "limit"}, Wrong{"small.limit=2", "limit"},
                    Wrong{"small.vram=1", "vram \"1\" has no unit"},
                    Wrong{"small.vram=1KiB", "vram 1KiB is out of range: allowed is 1MiB to 1TiB"},
                    Wrong{"small.vram=1GiB,weight=5", "vram \"1GiB,weight=5\" has an unknown unit"}));

}  // namespace
}  // namespace vgpud::daemon
