// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/weights.h"

#include <gtest/gtest.h>

namespace vgpud::kubernetes {
namespace {

constexpr const char* kProfiles = R"({"profiles": [{"name": "1/4", "weight": 50}, {"name": "1/8", "weight": 25}]})";

Config ThreeResources() {
  auto config = ParseConfig(
      "[resource.\"vgpud.dev/big\"]\nprofile = \"1/4\"\ncount = 2\nmax_weight = 400\n"
      "[resource.\"vgpud.dev/fixed\"]\nprofile = \"1/4\"\nweight = 70\n"
      "[resource.\"vgpud.dev/small\"]\nprofile = \"1/8\"\nweight = 30\nmax_weight = 60\n",
      "f");
  return std::move(*config);
}

std::map<std::string, int> Weights(const PodOfVf& pods, const Annotations& annotations) {
  return WishesOf(ThreeResources(), pods, annotations, kProfiles).weights;
}

using Expected = std::map<std::string, int>;

TEST(KubernetesWeights, WithoutAnnotationsThoseOfTheResource) {
  const Expected usual{{"k8s-big-0", 50}, {"k8s-big-1", 50}, {"k8s-small-0", 30}};
  EXPECT_EQ(Weights({}, {}), usual);
  EXPECT_EQ(Weights({{"k8s-big-0", "a/p"}}, {{"b/p", "200"}}), usual) << "another namespace's pod";
  EXPECT_EQ(Weights({{"k8s-fixed-0", "a/p"}}, {{"a/p", "200"}}), usual) << "its resource does not allow it";
}

TEST(KubernetesWeights, APodHasWhatItAsksForUpToTheMost) {
  EXPECT_EQ(Weights({{"k8s-big-1", "a/p"}, {"k8s-small-0", "a/p"}}, {{"a/p", "200"}}),
            (Expected{{"k8s-big-0", 50}, {"k8s-big-1", 200}, {"k8s-small-0", 60}}));
}

TEST(KubernetesWeights, WhatIsNoWeightIsRefused) {
  for (const char* wrong : {"0", "-1", "10001", "many", "1e3", " 5", "5 ", "99999999999999999999"}) {
    const auto wishes = WishesOf(ThreeResources(), {{"k8s-big-0", "a/p"}}, {{"a/p", wrong}}, kProfiles);
    EXPECT_EQ(wishes.weights.at("k8s-big-0"), 50) << wrong;
    EXPECT_EQ(wishes.refused.count("a/p"), 1u) << wrong;
  }
}

TEST(KubernetesWeights, WhatCantBeFoundOutStaysAsItIs) {
  for (const char* wrong : {"", "[]", "{\"profiles\": 3}", R"({"profiles": [null, {"name": "1/4"}]})"})
    EXPECT_EQ(WishesOf(ThreeResources(), {}, {}, wrong).weights, (Expected{{"k8s-small-0", 30}})) << wrong;
}

TEST(KubernetesWeights, AnnotationsOfPods) {
  const auto found = AnnotationsIn(R"({"items": [
    {"metadata": {"namespace": "a", "name": "p", "annotations": {"vgpud.dev/weight": "7", "other": "8"}}},
    {"metadata": {"namespace": "a", "name": "q", "annotations": {"vgpud.dev/weight": 7}}},
    {"metadata": {"namespace": "a", "name": "r"}}, {"metadata": []}, 5, null]})");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (Annotations{{"a/p", "7"}}));
  for (const char* wrong : {"", "{}", "[]", "{\"items\": {}}"}) EXPECT_FALSE(AnnotationsIn(wrong)) << wrong;
}

}  // namespace
}  // namespace vgpud::kubernetes
