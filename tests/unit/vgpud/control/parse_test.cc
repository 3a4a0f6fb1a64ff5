// SPDX-License-Identifier: Apache-2.0
// Requests of the control API at the edges of what is allowed, and what is said beyond them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sched/knobs.h"
#include "vgpud/control/json.h"
#include "vgpud/control/pacer.h"
#include "vgpud/model/api.h"
#include "vgpud/model/uuid.h"
#include "vgpud/registry/definition_text.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kTiB = uint64_t{1} << 40;

std::string ErrorOf(const std::string& body) {
  const auto spec = ParseVfSpec(body);
  return spec ? "" : spec.error().error;
}
bool Says(const std::string& error, const std::string& what) { return error.find(what) != std::string::npos; }

TEST(RequestMemoryTest, EachKindHasALeastAMostAndADefault) {
  const struct {
    const char* field;
    uint64_t least, most;
    uint64_t VfSpec::*value;
  } kRows[] = {{"vram_bytes", kMiB, kTiB, &VfSpec::vram_bytes},
               {"host_memory_bytes", 16 * kMiB, kTiB, &VfSpec::host_memory_bytes}};
  for (const auto& row : kRows) {
    const auto parse = [&](uint64_t bytes) {
      return ParseVfSpec(fmt::format(R"({{"name": "a", "{}": {}}})", row.field, bytes));
    };
    for (const uint64_t good : {row.least, row.least + 1, row.most - 1, row.most}) {
      const auto spec = parse(good);
      ASSERT_TRUE(spec) << row.field << good;
      EXPECT_EQ(good, (*spec).*row.value);
    }
    for (const uint64_t bad : {uint64_t{0}, row.least - 1, row.most + 1}) {
      const auto spec = parse(bad);
      ASSERT_FALSE(spec) << row.field << bad;
      EXPECT_EQ(row.field, spec.error().field);
      EXPECT_TRUE(Says(spec.error().error, fmt::format("allowed is {} to {} bytes", row.least, row.most)))
          << spec.error().error;
    }
    EXPECT_TRUE(Says(ErrorOf(fmt::format(R"({{"name": "a", "{}": 1.5}})", row.field)), "must be an integer"));
  }
  const auto usual = ParseVfSpec(R"({"name": "a"})");
  EXPECT_EQ(1024 * kMiB, usual->vram_bytes);
  EXPECT_EQ(768 * kMiB, usual->host_memory_bytes);
  EXPECT_EQ(257 * kMiB, ParseVfSpec(R"({"name": "a", "vram_bytes": 2097152})")->host_memory_bytes);
}

TEST(RequestFormTest, ABodyMayHave64KiBAndNoMore) {
  const std::string body = R"({"name": "a"})";
  EXPECT_TRUE(ParseVfSpec(body + std::string(65'536 - body.size(), ' ')));
  const auto large = ParseVfSpec(body + std::string(65'537 - body.size(), ' '));
  ASSERT_FALSE(large);
  EXPECT_EQ(ErrorKind::kTooLarge, large.error().kind);
  EXPECT_EQ("the request body has 65537 bytes, more than 65536", large.error().error);
}

TEST(RequestFormTest, SixteenLevelsAreRead) {
  const auto nested = [](size_t lists, const std::string& key = "name") {
    return fmt::format(R"({{"{}": {}{}}})", key, std::string(lists, '['), std::string(lists, ']'));
  };
  EXPECT_TRUE(Says(ErrorOf(nested(15)), "is not usable")) << ErrorOf(nested(15));
  EXPECT_EQ("the request body nests 17 levels deep, more than 16", ErrorOf(nested(16)));
  EXPECT_TRUE(Says(ErrorOf(nested(16, R"(\\)")), "17 levels")) << "the text ends behind an escaped backslash";
  EXPECT_TRUE(Says(ErrorOf(nested(16, R"(\")")), "17 levels")) << "and not at an escaped quote";
  std::string siblings = R"({"name": "a")";
  for (int i = 0; i < 40; ++i) siblings += fmt::format(R"(, "x{}": [{{}}])", i);
  EXPECT_TRUE(Says(ErrorOf(siblings + "}"), "unknown field")) << "side by side they are no levels";
}

TEST(RequestFormTest, WhatIsRepeatedInAnErrorIsCutAt40Characters) {
  const auto named = [](size_t letters) {
    return ErrorOf(fmt::format(R"({{"name": "{}"}})", std::string(letters, 'A')));
  };
  EXPECT_TRUE(Says(named(38), fmt::format("name \"{}\" is", std::string(38, 'A')))) << named(38);
  EXPECT_TRUE(Says(named(39), fmt::format("name \"{}... is", std::string(36, 'A')))) << named(39);
}

TEST(RequestFormTest, AllKnownFieldsAreListedForAnUnknownOne) {
  EXPECT_EQ(
      "unknown field \"colour\" (known: burst_us, domain, domain_uuid, ends_with_domain, gpu, group, guarantee, "
      "host_memory_bytes, limit, name, numa_node, owner_gid, owner_uid, paused, placement, priority, "
      "profile, "
      "slice_us, tenant, transient, vram_bytes, wake_first, weight)",
      ErrorOf(R"({"name": "a", "colour": 1})"));
  EXPECT_EQ(
      "unknown field \"weight\" (known: anticipate_percent, anticipate_us, averaging_factor, base_slice_us, "
      "floor_percent, group_weight, idle, idle_grace_us, max_slice_us, max_wait_us, min_slice_us, policy)",
      ParseGpuPatch(R"({"weight": 1})").error().error);
}

TEST(RequestFormTest, AFieldGivenTwiceIsFoundBehindOtherObjects) {
  EXPECT_EQ("gpu",
            ParseSettingsPatch(R"({"gpu": {"idle": "hold"}, "vfs": {"a": {"weight": 1}}, "gpu": {"idle": "hold"}})")
                .error()
                .field);
  EXPECT_EQ(
      "idle",
      ParseSettingsPatch(R"({"vfs": {"a": {"weight": 1}}, "gpu": {"idle": "hold", "idle": "hold"}})").error().field);
  EXPECT_EQ("weight",
            ParseSettingsPatch(R"({"vfs": {"a": {"limit": 1}, "b": {"weight": 1, "weight": 1}}})").error().field);
}

struct EdgeRow {
  const char* field;
  bool per_vf;
  const char* least;
  const char* most;
  const char* below;
  const char* above;
  const char* range;
};
constexpr EdgeRow kEdges[] = {
    {"weight", true, "1", "10000", "0", "10001", "1 to 10000"},
    {"slice_us", true, "100", "1000000", "99", "1000001", "100 to 1000000 us"},
    {"priority", true, "0", "3", "-1", "4", "0 to 3"},
    {"group", true, "0", "63", "-1", "64", "0 to 63"},
    {"guarantee", true, "0", "1", "0.0009", "1.000001", "0 or 0.001 to 1 of the GPU"},
    {"limit", true, "0.001", "1", "0.000999", "1.01", "0.001 to 1 of the GPU"},
    {"burst_us", true, "0", "1000000", "-1", "1000001", "0 to 1000000 us"},
    {"wake_first", true, "0", "1", "-1", "2", "0 to 1"},
    {"base_slice_us", false, "100", "1000000", "99", "1000001", "100 to 1000000 us"},
    {"max_wait_us", false, "0", "10000000", "999", "10000001", "0 or 1000 to 10000000 us"},
    {"min_slice_us", false, "100", "1000000", "99", "1000001", "100 to 1000000 us"},
    {"max_slice_us", false, "100", "1000000", "99", "1000001", "100 to 1000000 us"},
    {"averaging_factor", false, "1", "60", "0", "61", "1 to 60"},
    {"floor_percent", false, "1", "25", "0", "26", "1 to 25 %"},
    {"idle_grace_us", false, "0", "10000", "-1", "10001", "0 to 10000 us"},
    {"anticipate_percent", false, "0", "100", "-1", "101", "0 to 100 %"},
    {"anticipate_us", false, "10", "10000", "9", "10001", "10 to 10000 us"},
};

TEST(RequestKnobTest, EachHasItsRangeAndSaysIt) {
  ASSERT_EQ(kKnobs - 1, std::size(kEdges)) << "group_weight is one per group";
  for (const EdgeRow& row : kEdges) {
    const auto error = [&](const char* value) -> std::string {
      const std::string body = fmt::format(R"({{"{}": {}}})", row.field, value);
      if (row.per_vf) {
        const auto patch = ParseVfPatch(body);
        return patch ? "" : patch.error().error;
      }
      const auto patch = ParseGpuPatch(body);
      return patch ? "" : patch.error().error;
    };
    for (const char* good : {row.least, row.most}) EXPECT_EQ("", error(good)) << row.field;
    for (const char* bad : {row.below, row.above})
      EXPECT_TRUE(Says(error(bad), fmt::format("is out of range: allowed is {}", row.range)))
          << row.field << error(bad);
    EXPECT_TRUE(Says(error("true"), fmt::format("{} must be {}, not true", row.field,
                                                Says(row.range, "of the GPU") ? "a number from 0 to 1" : "an integer")))
        << error("true");
  }
}

TEST(RequestKnobTest, PartsAreRoundedToMillionthsAndNeverToNothing) {
  const auto guarantee = [](const char* text) -> int64_t {
    const auto patch = ParseVfPatch(fmt::format(R"({{"guarantee": {}}})", text));
    return patch ? static_cast<int64_t>(patch->knobs.at(0).value) : -1;
  };
  EXPECT_EQ(250'000, guarantee("0.25"));
  EXPECT_EQ(333'333, guarantee("0.3333333"));
  EXPECT_EQ(666'667, guarantee("0.6666667"));
  EXPECT_EQ(1'000'000, guarantee("1"));
  EXPECT_EQ(0, guarantee("0"));
  EXPECT_EQ(-1, guarantee("0.0000004"));
}

TEST(RequestKnobTest, NullIsWhatAVfHasThatNobodySaidAnythingOf) {
  const auto patch = ParseVfPatch(
      R"({"weight": null, "slice_us": null, "priority": null, "group": null, "guarantee": null, "limit": null, "burst_us": null, "wake_first": null})");
  ASSERT_TRUE(patch);
  VfView view{VfId{0}, 7, Ns{5'000'000}};
  view.priority = 3;
  view.group = view.guarantee = view.limit = 5;
  view.burst = Ns{9'000'000};
  view.wake_first = true;
  Apply(*patch, view);
  EXPECT_EQ(VfView{VfId{0}}, view);
}

TEST(RequestKnobTest, PausedIsYesOrNo) {
  EXPECT_EQ(true, ParseVfPatch(R"({"paused": true})")->paused);
  EXPECT_EQ(false, ParseVfPatch(R"({"paused": false})")->paused);
  EXPECT_EQ(std::nullopt, ParseVfPatch(R"({"weight": 5})")->paused);
  const auto number = ParseVfPatch(R"({"paused": 1})");
  ASSERT_FALSE(number);
  EXPECT_EQ("paused", number.error().field);
  EXPECT_EQ("paused must be true or false, not 1", number.error().error);
}

TEST(RequestDomainTest, ADomainHasANameAndAUuid) {
  const char* const kUuid = "43979400-AC7A-42f1-b64e-09e640ed9d0d";
  const auto parse = [&](const std::string& name, const std::string& uuid) {
    return ParseVfDomain(fmt::format(R"({{"domain": "{}", "domain_uuid": "{}"}})", name, uuid));
  };
  for (const std::string& good : {std::string("g"), std::string("guest ä/1"), std::string(255, 'x')}) {
    const auto domain = parse(good, kUuid);
    ASSERT_TRUE(domain) << good;
    EXPECT_EQ(good, domain->name);
    EXPECT_EQ("43979400-ac7a-42f1-b64e-09e640ed9d0d", domain->uuid);
    EXPECT_FALSE(domain->ends_vf);
  }
  for (const std::string& bad : {std::string(), std::string("a\\nb"), std::string("a\\u001bb"), std::string("a\\u007f"),
                                 std::string(256, 'x')}) {
    const auto domain = parse(bad, kUuid);
    ASSERT_FALSE(domain) << bad;
    EXPECT_EQ("domain", domain.error().field) << bad;
  }
  for (const std::string bad :
       {"", "43979400", "43979400-ac7a-42f1-b64e-09e640ed9d0g", "43979400-ac7a-42f1-b64e-09e640ed9d0d0"})
    EXPECT_EQ("domain_uuid", parse("a", bad).error().field) << bad;
  EXPECT_EQ("domain_uuid", ParseVfDomain(R"({"domain": "a"})").error().field);
  EXPECT_EQ("domain", ParseVfDomain(R"({"domain_uuid": "x"})").error().field);
  EXPECT_EQ("domain", ParseVfDomain("{}").error().field);
  EXPECT_EQ("ends_with_domain",
            ParseVfDomain(R"({"domain": "a", "domain_uuid": "x", "ends_with_domain": true})").error().field);
}

TEST(RequestOwnerTest, AnOwnerIsAUserAGroupOrBothByNumber) {
  const auto parse = [](const std::string& fields) { return ParseVfSpec(R"({"name": "a")" + fields + "}"); };
  EXPECT_EQ(SocketAccess{}, parse("")->owner);
  EXPECT_EQ((SocketAccess{.user = 0, .group = {}}), parse(R"(, "owner_uid": 0)")->owner);
  EXPECT_EQ((SocketAccess{.user = {}, .group = 0xfffffffe}), parse(R"(, "owner_gid": 4294967294)")->owner);
  EXPECT_EQ((SocketAccess{.user = 1, .group = 2}), parse(R"(, "owner_uid": 1, "owner_gid": 2)")->owner);
  for (const std::string field : {"owner_uid", "owner_gid"})
    for (const std::string bad :
         {"4294967295", "4294967296", "18446744073709551616", "-1", "1.0", "\"alice\"", "null", "true"}) {
      const auto spec = parse(fmt::format(R"(, "{}": {})", field, bad));
      ASSERT_FALSE(spec) << bad;
      EXPECT_EQ(field, spec.error().field) << bad;
    }
}

TEST(RequestDomainTest, AVfThatEndsWithItsDomainIsTransientAndIsReadAgain) {
  const std::string domain =
      R"("domain": "a", "domain_uuid": "43979400-ac7a-42f1-b64e-09e640ed9d0d", "ends_with_domain": )";
  for (const bool ends : {false, true}) {
    const auto spec = ParseVfSpec(fmt::format(R"({{"name": "v", {}{}}})", domain, ends));
    ASSERT_TRUE(spec) << spec.error().error;
    EXPECT_EQ(ends, spec->transient);
    const auto again = ParseDefinition(ToText(VfDefinition{*spec, RandomUuid(), 3, "/s"}));
    ASSERT_TRUE(again) << again.error().error;
    EXPECT_EQ(spec->domain, again->spec.domain);
    EXPECT_EQ(ends, again->spec.transient);
  }
  EXPECT_TRUE(Says(ErrorOf(R"({"name": "v", "ends_with_domain": true})"), "domain is missing"));
}

TEST(RequestGroupTest, GroupsAreNumbersFrom0To63WithAWeightEach) {
  const auto patch = ParseGpuPatch(R"({"group_weight": {"0": 1, "10": 10000, "63": null}})");
  ASSERT_TRUE(patch);
  EXPECT_EQ((std::vector<std::pair<uint8_t, uint32_t>>{{0, 1}, {10, 10'000}, {63, 100}}), patch->group_weights);
  for (const char* bad : {R"({"": 1})", R"({"-1": 1})", R"({"1 ": 1})", R"({"64": 1})", R"({"1": 10001})",
                          R"({"1": 0})", R"({"99999999999999999999": 1})", R"({"1": "2"})"}) {
    const auto refused = ParseGpuPatch(fmt::format(R"({{"group_weight": {}}})", bad));
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ("group_weight", refused.error().field);
  }
}

TEST(RequestSettingsTest, EitherPartWillDoAndErrorsSayOfWhichTheyAre) {
  const auto gpu = ParseSettingsPatch(R"({"gpu": {"idle": "hold"}})");
  ASSERT_TRUE(gpu && gpu->gpu);
  EXPECT_EQ(WhenIdle::kHold, gpu->gpu->idle);
  EXPECT_TRUE(gpu->vfs.empty());
  const auto vfs = ParseSettingsPatch(R"({"vfs": {"a": {"weight": 5}}})");
  ASSERT_TRUE(vfs);
  EXPECT_FALSE(vfs->gpu);
  EXPECT_EQ(1u, vfs->vfs.size());
  EXPECT_TRUE(ParseSettingsPatch(R"({"gpu": {"idle": 1}})").error().error.starts_with("gpu: idle 1 is unknown"));
  EXPECT_TRUE(ParseSettingsPatch(R"({"vfs": {"b": {"weight": 0}}})").error().error.starts_with("vf \"b\": weight 0"));
  EXPECT_EQ(WhenIdle::kYield, ParseGpuPatch(R"({"idle": "yield"})")->idle);
}

TEST(ApiTest, LimitsAreTheDocumentedOnes) {
  EXPECT_EQ(1024u, control::kMaxVfs);
  EXPECT_EQ(31u, control::kMaxNameBytes);
  EXPECT_EQ(65'536u, control::kMaxBodyBytes);
  EXPECT_EQ("/d/control.sock", control::ControlSocketPath("/d"));
  EXPECT_EQ("/d/own.sock", control::OwnSocketPath("/d/control.sock"));
}

TEST(ApiTest, NamesHaveLowerCaseLettersDigitsAndDashes) {
  for (const char* good : {"a", "z", "0", "9", "a-", "z9-0a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    EXPECT_TRUE(control::IsValidName(good)) << good;
  for (const char* bad : {"", "-", "-a", "A", "a_", "a.b", "a/b", "`", "{", "/", ":", "a b", "a`", "a{", "a/",
                          "a:", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    EXPECT_FALSE(control::IsValidName(bad)) << bad;
}

TEST(ParseTest, WhereAVfIsToBe) {
  const auto spec = ParseVfSpec(R"({"name": "a", "placement": "pack", "numa_node": 1})");
  ASSERT_TRUE(spec);
  EXPECT_EQ(Placement::kPack, spec->placement);
  EXPECT_EQ(1, spec->numa_node);
  EXPECT_EQ("left", ParseVfSpec(R"({"name": "a", "gpu": "left"})")->gpu);
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"name": "a", "gpu": 1})", "gpu"},
      {R"({"name": "a", "placement": "packed"})", "placement"},
      {R"({"name": "a", "placement": "pack", "gpu": "left"})", "placement"},
      {R"({"name": "a", "numa_node": -1})", "numa_node"},
      {R"({"name": "a", "numa_node": 1024})", "numa_node"},
      {R"({"name": "a", "numa_node": 0.5})", "numa_node"}};
  for (const auto& [body, field] : wrong) EXPECT_EQ(field, ParseVfSpec(body).error().field) << body;
}

// One that waits is asked again whenever there may be room.
TEST(ParseTest, AWishCostsTheSameHoweverLongItsBodyWas) {
  const auto time_of = [](size_t spaces) {
    const auto wish = ParseVfWish(R"({"name": "a")" + std::string(spaces, ' ') + "}", Profiles(), "");
    EXPECT_TRUE(wish);
    Ns least = Ns::max();
    for (int round = 0; round < 20; ++round) {
      const Ns before = ThreadTime();
      for (int i = 0; i < 10; ++i) EXPECT_EQ("a", wish->on(Profiles())->name);
      least = std::min(least, ThreadTime() - before);
    }
    return least;
  };
  EXPECT_LT(time_of(60'000), 4 * time_of(0));
}

TEST(ParseTest, GpusByName) {
  const auto patch =
      ParseSettingsPatch(R"({"gpus": {"left": {"base_slice_us": 1000}, "right": {"policy": "reserve"}}})");
  ASSERT_TRUE(patch);
  ASSERT_EQ(2u, patch->gpus.size());
  EXPECT_EQ("left", patch->gpus[0].first);
  EXPECT_EQ("reserve", patch->gpus[1].second.policy);
  EXPECT_EQ("gpu \"left\": nothing to change: give policy, idle or a knob, like base_slice_us",
            ParseSettingsPatch(R"({"gpus": {"left": {}}})").error().error);
}

class RuntimeDirTest : public testing::Test {
 protected:
  RuntimeDirTest() { Save("VGPUD_RUNTIME_DIR", own_), Save("XDG_RUNTIME_DIR", xdg_); }
  ~RuntimeDirTest() override { Restore("VGPUD_RUNTIME_DIR", own_), Restore("XDG_RUNTIME_DIR", xdg_); }

 private:
  static void Save(const char* name, std::optional<std::string>& value) {
    if (const char* is = std::getenv(name); is != nullptr) value = is;
  }
  static void Restore(const char* name, const std::optional<std::string>& value) {
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }
  std::optional<std::string> own_, xdg_;
};

TEST_F(RuntimeDirTest, IsTheOneThatIsNamedElseTheSystemsForRootElseTheUsers) {
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  ::setenv("VGPUD_RUNTIME_DIR", "/x", 1);
  EXPECT_EQ("/x", control::DefaultRuntimeDir());
  for (const bool empty : {true, false}) {
    empty ? ::setenv("VGPUD_RUNTIME_DIR", "", 1) : ::unsetenv("VGPUD_RUNTIME_DIR");
    EXPECT_EQ(::geteuid() == 0 ? "/run/vgpud" : "/run/user/7/vgpud", control::DefaultRuntimeDir());
  }
}

}  // namespace
}  // namespace vgpud::daemon
