// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/claim.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;

const ClaimId kId{.uid = "d2f9-1", .ns = "team", .name = "train"};

// A claim with one VF for the request "gpu".
Json Claim() {
  return Json::parse(
      R"({"metadata": {"name": "train", "namespace": "team", "uid": "d2f9-1"}, "status": {"allocation": {"devices": {
    "results": [{"request": "gpu", "driver": "other.dev", "pool": "n", "device": "x"},
                {"request": "gpu", "driver": "vgpud.dev", "pool": "node-1", "device": "k8s-vf-0"}],
    "config": [{"source": "FromClass", "opaque": {"driver": "vgpud.dev", "parameters": {"weight": 50, "slice": "2ms"}}},
               {"source": "FromClaim", "requests": ["gpu"], "opaque": {"driver": "vgpud.dev", "parameters":
                 {"apiVersion": "vgpud.dev/v1", "kind": "VfParameters", "weight": 70, "vram": "64Mi"}}},
               {"source": "FromClaim", "requests": ["disk"], "opaque": {"driver": "vgpud.dev", "parameters": {"weight": 9}}},
               {"source": "FromClaim", "opaque": {"driver": "other.dev", "parameters": {"any": [1]}}}]}}}})");
}

Json& Results(Json& claim) { return claim["status"]["allocation"]["devices"]["results"]; }
Json& Configs(Json& claim) { return claim["status"]["allocation"]["devices"]["config"]; }
Json& Parameters(Json& claim) { return Configs(claim)[1]["opaque"]["parameters"]; }

TEST(KubernetesClaim, WhatIsAllocatedToUs) {
  const auto vfs = ParseClaim(Claim().dump(), kId, "node-1");
  ASSERT_TRUE(vfs) << vfs.error().context;
  ASSERT_EQ(vfs->size(), 1u);
  EXPECT_EQ(vfs->front(), (AllocatedVf{"gpu", "k8s-vf-0", {50, 2000, {}}, {70, {}, uint64_t{64} << 20}}));
}

TEST(KubernetesClaim, ASubrequestIsOfItsRequest) {
  Json claim = Claim();
  Results(claim)[1]["request"] = "gpu/small";
  const auto of_request = ParseClaim(claim.dump(), kId, "node-1");
  ASSERT_TRUE(of_request);
  EXPECT_EQ(of_request->front().request, "gpu");
  EXPECT_EQ(of_request->front().of_claim.weight, 70);
  Configs(claim)[1]["requests"] = {"gpu/large"};
  EXPECT_EQ(ParseClaim(claim.dump(), kId, "node-1")->front().of_claim, VfSettings());
  Configs(claim)[1]["requests"] = {"gpu/small"};
  EXPECT_EQ(ParseClaim(claim.dump(), kId, "node-1")->front().of_claim.weight, 70);
}

TEST(KubernetesClaim, WhatIsWrongIsSaid) {
  const struct {
    void (*change)(Json& claim);
    const char* says;
  } wrong[] = {
      {[](Json& claim) { claim = 3; }, "without the claim team/train"},
      {[](Json& claim) { claim["metadata"]["uid"] = "another"; }, "is another claim now"},
      {[](Json& claim) { claim.erase("status"); }, "no device of vgpud.dev is allocated"},
      {[](Json& claim) { Results(claim) = "x"; }, "no list"},
      {[](Json& claim) { Results(claim).erase(1); }, "no device of vgpud.dev"},
      {[](Json& claim) { Results(claim).push_back(Results(claim)[1]); }, "k8s-vf-0 is allocated twice"},
      {[](Json& claim) { Results(claim) = Json(33, Results(claim)[1]); }, "too long"},
      {[](Json& claim) { Results(claim)[1]["pool"] = "node-2"; }, "of the pool \"node-2\""},
      {[](Json& claim) { Results(claim)[1]["device"] = "../x"; }, "no name of a VF"},
      {[](Json& claim) { Results(claim)[1]["device"] = std::string(40, 'a'); }, "no name of a VF"},
      {[](Json& claim) { Results(claim)[1]["request"] = "a b"; }, "is no name"},
      {[](Json& claim) { Results(claim)[1]["adminAccess"] = true; }, "no access for administrators"},
      {[](Json& claim) { Results(claim)[1]["shareID"] = "x"; }, "can't be shared"},
      {[](Json& claim) { Configs(claim) = 1; }, "its configuration is no list"},
      {[](Json& claim) { Configs(claim)[1]["source"] = "FromMe"; }, "the source \"FromMe\""},
      {[](Json& claim) { Configs(claim)[1]["requests"] = 1; }, "no list"},
      {[](Json& claim) { Parameters(claim) = 1; }, "parameters are no object"},
      {[](Json& claim) { Parameters(claim)["user"] = 0; }, "no parameter \"user\": weight, slice, vram"},
      {[](Json& claim) { Parameters(claim)["kind"] = "Vf"; }, "kind: there is only VfParameters"},
      {[](Json& claim) { Parameters(claim)["apiVersion"] = 1; }, "there is only vgpud.dev/v1"},
      {[](Json& claim) { Parameters(claim)["weight"] = 0; }, "weight: a number of 1 to 10000"},
      {[](Json& claim) { Parameters(claim)["weight"] = 10001; }, "weight: a number"},
      {[](Json& claim) { Parameters(claim)["weight"] = 4294967297; }, "weight: a number"},
      {[](Json& claim) { Parameters(claim)["weight"] = 1.5; }, "weight: a number"},
      {[](Json& claim) { Parameters(claim)["weight"] = "70"; }, "weight: a number"},
      {[](Json& claim) { Parameters(claim)["slice"] = "99us"; }, "slice: a time like"},
      {[](Json& claim) { Parameters(claim)["slice"] = 2; }, "slice: a time like"},
      {[](Json& claim) { Parameters(claim)["slice"] = std::string(100000, '9') + "ms"; }, "slice: a time like"},
      {[](Json& claim) { Parameters(claim)["vram"] = "64"; }, "vram: memory like"},
      {[](Json& claim) { Parameters(claim)["vram"] = "0Mi"; }, "vram: memory like"},
      {[](Json& claim) { Parameters(claim)["vram"] = "99999999999999999999Mi"; }, "vram: memory like"},
  };
  for (const auto& each : wrong) {
    Json claim = Claim();
    each.change(claim);
    const auto vfs = ParseClaim(claim.dump(), kId, "node-1");
    ASSERT_FALSE(vfs) << claim;
    EXPECT_NE(vfs.error().context.find(each.says), std::string::npos) << vfs.error().context << claim;
  }
  EXPECT_FALSE(ParseClaim("{", kId, "node-1"));
}

TEST(KubernetesClaim, NamesOfClaims) {
  EXPECT_TRUE(CheckClaimId(kId));
  for (const char* wrong : {"", "..", "a/b", "a b", "-a", "a?b", "a\n", "%41", "\xc3\xa4"}) {
    EXPECT_FALSE(CheckClaimId({wrong, "team", "train"})) << wrong;
    EXPECT_FALSE(CheckClaimId({"d2f9", wrong, "train"})) << wrong;
    EXPECT_FALSE(CheckClaimId({"d2f9", "team", wrong})) << wrong;
  }
  EXPECT_FALSE(CheckClaimId({std::string(65, 'a'), "team", "train"}));
}

// Whatever the bytes are, what comes out of it is safe.
TEST(KubernetesClaim, DamagedOnes) {
  std::mt19937_64 random(7);
  const std::string whole = Claim().dump();
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 20);
      else
        text[at] = static_cast<char>(random());
      if (text.empty()) break;
    }
    const auto vfs = ParseClaim(text, kId, "node-1");
    if (!vfs) continue;
    ++taken;
    for (const AllocatedVf& vf : *vfs) {
      EXPECT_EQ(vf.device.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << text;
      for (const VfSettings& each : {vf.of_class, vf.of_claim})
        EXPECT_TRUE(!each.weight || *each.weight <= kMostWeight);
    }
  }
  EXPECT_GT(taken, 0);
}

TEST(KubernetesClaim, WhatItsResourceAllows) {
  Resource resource{"vgpud.dev/vf", "vf", "1/4", 1, 1, {}, {}, {}, false, true, {}};
  const uint64_t most = uint64_t{1} << 30;
  const auto says = [&](const VfSettings& of_class, const VfSettings& of_claim) {
    const auto settings = SettingsFor({"gpu", "k8s-vf-0", of_class, of_claim}, resource, most);
    return settings ? "" : settings.error().context;
  };
  EXPECT_EQ(says({9000, 500000, most}, {}), "") << "the administrator may";
  EXPECT_NE(says({}, {.weight = 1, .slice_us = {}, .vram_bytes = {}}).find("may not ask for a weight"),
            std::string::npos);
  EXPECT_NE(says({}, {.weight = {}, .slice_us = 500, .vram_bytes = {}}).find("may not ask for a slice"),
            std::string::npos);
  EXPECT_NE(says({}, {.weight = {}, .slice_us = {}, .vram_bytes = most + 1}).find("more than the 1GiB"),
            std::string::npos);
  EXPECT_NE(says({{}, {}, most + 1}, {}).find("more than the 1GiB"), std::string::npos);
  resource.max_weight = 400;
  resource.max_slice_us = 4000;
  EXPECT_NE(says({}, {.weight = 401, .slice_us = {}, .vram_bytes = {}}).find("401 is more than 400"),
            std::string::npos);
  EXPECT_NE(says({}, {.weight = {}, .slice_us = 4001, .vram_bytes = {}}).find("the most"), std::string::npos);
  const auto both = SettingsFor({"gpu", "k8s-vf-0", {9000, 500, most / 2}, {400, {}, most / 4}}, resource, most);
  ASSERT_TRUE(both);
  EXPECT_EQ(*both, (VfSettings{400, 500, most / 4})) << "the claim goes first";
}

}  // namespace
}  // namespace vgpud::kubernetes
