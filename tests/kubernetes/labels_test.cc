// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/labels.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vgpud::kubernetes {
namespace {

constexpr const char* kGpus = R"({"gpus": [
  {"name": "soft0", "kind": "soft", "compute_capability": "7.5", "policy": "strict", "vram_bytes": 1073741824},
  {"name": "gpu1", "kind": "cuda", "compute_capability": "9.0", "policy": "strict", "vram_bytes": null}]})";
constexpr const char* kProfiles = R"({"profiles": [{"name": "1/4", "vram_bytes": 268435456, "weight": 50}]})";

Config TwoResources() {
  auto config = ParseConfig(
      "[resource.\"vgpud.dev/quarter\"]\nprofile = \"1/4\"\ncount = 3\nreplicas = 2\n"
      "[resource.\"vgpud.dev/own\"]\nprofile = \"a b~\"\n",
      "f");
  return std::move(*config);
}

TEST(KubernetesLabels, SayWhatTheNodeHas) {
  const auto labels = LabelsOf(TwoResources(), kGpus, kProfiles);
  ASSERT_TRUE(labels) << labels.error().context;
  EXPECT_EQ(*labels, (Labels{{"vgpud.dev/gpu.count", "2"},
                             {"vgpud.dev/gpu.product", "cuda_soft"},
                             {"vgpud.dev/gpu.compute-capability", "7.5_9.0"},
                             {"vgpud.dev/gpu.memory", "1024"},
                             {"vgpud.dev/policy", "strict"},
                             {"vgpud.dev/quarter.count", "3"},
                             {"vgpud.dev/quarter.memory", "256"},
                             {"vgpud.dev/quarter.profile", "1-4"},
                             {"vgpud.dev/quarter.replicas", "2"},
                             {"vgpud.dev/own.count", "1"},
                             {"vgpud.dev/own.profile", "a-b"},
                             {"vgpud.dev/own.replicas", "1"}}));
}

TEST(KubernetesLabels, AnswersThatAreNone) {
  for (const char* wrong : {"", "{", "[]", "{}", R"({"gpus": 3})", R"({"profiles": null})"}) {
    EXPECT_FALSE(LabelsOf(TwoResources(), wrong, kProfiles)) << wrong;
    EXPECT_FALSE(LabelsOf(TwoResources(), kGpus, wrong)) << wrong;
  }
  EXPECT_TRUE(LabelsOf(TwoResources(), R"({"gpus": [3, null, {"vram_bytes": -1}]})", R"({"profiles": [[], 4]})"));
}

TEST(KubernetesLabels, OnlyWhatDiffersIsChangedAndOnlyOfOurs) {
  const Labels wanted{{"vgpud.dev/a", "1"}, {"vgpud.dev/b", "2"}};
  const auto patch = LabelsPatch(
      wanted,
      R"({"metadata": {"labels": {"vgpud.dev/a": "1", "vgpud.dev/b": "3", "vgpud.dev/old": "", "vgpud.dev/node": "true", "other/old": "x"}}})");
  ASSERT_TRUE(patch);
  EXPECT_EQ(nlohmann::json::parse(*patch),
            nlohmann::json::parse(R"({"metadata": {"labels": {"vgpud.dev/b": "2", "vgpud.dev/old": null}}})"));
  const auto none = LabelsPatch(wanted, R"({"metadata": {"labels": {"vgpud.dev/a": "1", "vgpud.dev/b": "2"}}})");
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, "");
  EXPECT_NE(*LabelsPatch(wanted, R"({"metadata": {}})"), "");
  for (const char* wrong : {"", "[]", "{\"metadata\": 3}", R"({"metadata": {"labels": [1]}})"})
    EXPECT_FALSE(LabelsPatch(wanted, wrong)) << wrong;
}

}  // namespace
}  // namespace vgpud::kubernetes
