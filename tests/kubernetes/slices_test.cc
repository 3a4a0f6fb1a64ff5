// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/slices.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;

const SliceNode kNode{.name = "node-1", .uid = "u1"};

std::vector<SliceDevice> Devices(int count) {
  std::vector<SliceDevice> devices;
  for (int i = 0; i < count; ++i)
    devices.push_back({"k8s-vf-" + std::to_string(i), "vf", "1/4", "gpu0", "soft", "", "7.5", 0, uint64_t{3} << 29});
  return devices;
}

// The API server: what it has after the changes.
Json Apply(Json list, const std::vector<SliceChange>& changes) {
  for (const SliceChange& change : changes) {
    Json& items = list["items"];
    const std::string name = change.path.substr(change.path.rfind('/') + 1);
    const auto found =
        std::find_if(items.begin(), items.end(), [&](const Json& each) { return each["metadata"]["name"] == name; });
    if (change.method == "POST") {
      items.push_back(Json::parse(change.body));
      items.back()["metadata"]["resourceVersion"] = "1";
    } else if (found == items.end()) {
      ADD_FAILURE() << change.path;
    } else if (change.method == "DELETE") {
      items.erase(found);
    } else {
      EXPECT_EQ(Json::parse(change.body)["metadata"]["resourceVersion"], (*found)["metadata"]["resourceVersion"]);
      *found = Json::parse(change.body);
    }
  }
  return list;
}

Json Changed(const Json& list, const std::vector<SliceDevice>& devices, size_t changes) {
  const auto made = SliceChanges(list.dump(), kNode, devices);
  EXPECT_TRUE(made);
  EXPECT_EQ(made->size(), changes);
  return Apply(list, *made);
}

TEST(KubernetesSlices, OneOfEachNodeWithItsDevices) {
  const Json list = Changed({{"items", Json::array()}}, Devices(2), 1);
  const Json& slice = list["items"][0];
  EXPECT_EQ(slice["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["uid"], "u1");
  const Json& spec = slice["spec"];
  EXPECT_EQ(spec["driver"], "vgpud.dev");
  EXPECT_EQ(spec["nodeName"], "node-1");
  EXPECT_EQ(spec["pool"], (Json{{"name", "node-1"}, {"generation", 1}, {"resourceSliceCount", 1}}));
  EXPECT_EQ(spec["devices"][1],
            Json::parse(R"({"name": "k8s-vf-1", "capacity": {"memory": {"value": "1536Mi"}}, "attributes": {
      "resource": {"string": "vf"}, "profile": {"string": "1/4"}, "gpu": {"string": "gpu0"}, "product": {"string": "soft"},
      "computeCapability": {"version": "7.5.0"}, "numaNode": {"int": 0}}})"));
  Changed(list, Devices(2), 0);
}

TEST(KubernetesSlices, ChangesHaveANewGenerationInAllOfThem) {
  Json list = Changed({{"items", Json::array()}}, Devices(300), 3);
  EXPECT_EQ(list["items"][2]["spec"]["devices"].size(), 44u);
  list = Changed(list, Devices(299), 3);
  for (const Json& slice : list["items"]) EXPECT_EQ(slice["spec"]["pool"]["generation"], 2);
  list = Changed(list, Devices(100), 3);
  ASSERT_EQ(list["items"].size(), 1u);
  EXPECT_EQ(list["items"][0]["spec"]["pool"], (Json{{"name", "node-1"}, {"generation", 3}, {"resourceSliceCount", 1}}));
  list = Changed(list, {}, 1);
  EXPECT_EQ(list["items"].size(), 0u);
  Changed(list, {}, 0);
}

TEST(KubernetesSlices, WhatSomebodyElseDidToThemIsMended) {
  Json list = Changed({{"items", Json::array()}}, Devices(200), 2);
  const Json good = list;
  list["items"][1]["spec"]["devices"].erase(3);
  Changed(list, Devices(200), 2);
  list = good;
  list["items"][0]["spec"]["pool"]["generation"] = 7;
  list = Changed(list, Devices(200), 2);
  EXPECT_EQ(list["items"][1]["spec"]["pool"]["generation"], 8);
}

TEST(KubernetesSlices, ThoseOfOthersAreLeftAlone) {
  Json list{{"items", Json::array()}};
  list["items"].push_back({{"metadata", {{"name", "a"}}}, {"spec", {{"driver", "other.dev"}, {"nodeName", "node-1"}}}});
  list["items"].push_back({{"metadata", {{"name", "b"}}}, {"spec", {{"driver", "vgpud.dev"}, {"nodeName", "node-2"}}}});
  list["items"].push_back(3);
  Changed(list, {}, 0);
  EXPECT_FALSE(SliceChanges("{}", kNode, {}));
  EXPECT_FALSE(SliceChanges("no", kNode, {}));
}

TEST(KubernetesSlices, OnlyVfsForClaimsThatCanBeUsed) {
  const auto config = ParseConfig(
      "[resource.\"vgpud.dev/claims\"]\nprofile = \"1/4\"\ncount = 2\ndra = true\n[resource.\"vgpud.dev/vf\"]\nprofile "
      "= \"1/4\"\n",
      "f");
  ASSERT_TRUE(config);
  const auto vf = [](std::string name, std::string problem) {
    return OfferedVf{std::move(name), "c", "v", "a", 1, "1/4", std::move(problem)};
  };
  const Offer offer{{"vgpud.dev/claims", {vf("k8s-claims-0", ""), vf("k8s-claims-1", "lost")}},
                    {"vgpud.dev/vf", {vf("k8s-vf-0", "")}}};
  const auto devices =
      DevicesOf(*config, offer,
                R"({"gpus": [{"name": "b", "kind": "soft"}, {"name": "a", "kind": "cuda", "compute_capability": "9.0",
          "device": {"name": "Big", "address": "0000:01:00.0"}}]})",
                R"({"profiles": [{"name": "1/4", "vram_bytes": 1048576}]})");
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0], (SliceDevice{"k8s-claims-0", "claims", "1/4", "a", "Big", "0000:01:00.0", "9.0", 1, 1 << 20}));
  EXPECT_TRUE(DevicesOf(*config, offer, "no", "no").empty());
}

}  // namespace
}  // namespace vgpud::kubernetes
