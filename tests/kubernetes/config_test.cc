// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/config.h"

#include <gtest/gtest.h>

namespace vgpud::kubernetes {
namespace {

TEST(KubernetesConfig, WhatAFileSays) {
  const auto config = ParseConfig(
      "[resource.\"vgpud.dev/quarter\"]\nprofile = \"1/4\"\ncount = 4\nreplicas = 2\nweight = 200\n"
      "[resource.\"vgpud.dev/vf\"]\nprofile = \"1/8\"\nmax_weight = 300\ntenant = \"pods\"\n",
      "f");
  ASSERT_TRUE(config) << config.error().context;
  ASSERT_EQ(config->resources.size(), 2u);
  EXPECT_EQ(config->resources[0],
            (Resource{"vgpud.dev/quarter", "quarter", "1/4", 4, 2, 200, {}, {}, false, false, {}}));
  EXPECT_EQ(config->resources[1], (Resource{"vgpud.dev/vf", "vf", "1/8", 1, 1, {}, 300, {}, false, false, {}, "pods"}));
  EXPECT_EQ(config->resources[0].VfName(3), "k8s-quarter-3");
}

TEST(KubernetesConfig, WhatIsWrongIsSaidWithItsLine) {
  const std::string good = "[resource.\"vgpud.dev/vf\"]\nprofile = \"1/4\"\n";
  const struct {
    std::string text, says;
  } wrong[] = {
      {"", "no resource"},
      {"[resource]\n", "no resource"},
      {"[resource\n", "f:1:"},
      {"[other]\n", "\"other\""},
      {"resource = 1\n", "f:1:"},
      {"[resource.vf]\nprofile=\"1/4\"\n", "no name of a resource"},
      {"[resource.\"vgpud.dev/\"]\nprofile=\"1/4\"\n", "no name of a resource"},
      {"[resource.\"vgpud.dev/Big\"]\nprofile=\"1/4\"\n", "no name of a resource"},
      {"[resource.\"vgpud.dev/a/b\"]\nprofile=\"1/4\"\n", "no name of a resource"},
      {"[resource.\"nodomain/vf\"]\nprofile=\"1/4\"\n", "no name of a resource"},
      {"[resource.\"vgpud.dev/abcdefghijklmnopqrstu\"]\nprofile=\"1/4\"\n", "no name of a resource"},
      {"[resource.\"vgpud.dev/vf\\u0000\"]\nprofile=\"1/4\"\n", "no name of a resource"},
      {good + "tenant = 3\n", "tenant: a name in quotes"},
      {good + "tenant = \"Pods!\"\n", "tenant: a name in quotes"},
      {good + "[resource.\"other.dev/vf\"]\nprofile = \"1/4\"\n", "there is another resource that ends with /vf"},
      {"[resource]\n\"vgpud.dev/vf\" = 3\n", "write [resource.\"vgpud.dev/vf\"]"},
      {"[resource.\"vgpud.dev/vf\"]\ncount = 2\n", "has no profile"},
      {"[resource.\"vgpud.dev/vf\"]\nprofile = 4\n", "f:2:1: profile: a name in quotes"},
      {"[resource.\"vgpud.dev/vf\"]\nprofile = \"\"\n", "profile: a name in quotes"},
      {good + "count = 0\n", "f:3:1: count: a number of 1 to 256"},
      {good + "count = 257\n", "count: a number of 1 to 256"},
      {good + "count = \"2\"\n", "count: a number of 1 to 256"},
      {good + "count = 4294967297\n", "count: a number of 1 to 256"},
      {good + "replicas = 65\n", "replicas: a number of 1 to 64"},
      {good + "weight = -1\n", "weight: a number of 1 to 10000"},
      {good + "weights = 1\n",
       "there is no \"weights\": profile, count, replicas, weight, max_weight, max_slice_us, user, vm, dra"},
      {good + "vm = 1\n", "f:3:1: vm: true or false"},
      {good + "vm = true\nreplicas = 2\n", "virtual machines can't share a VF"},
      {good + "dra = 1\n", "f:3:1: dra: true or false"},
      {good + "dra = true\nreplicas = 2\n", "a claim has its VFs for itself"},
      {good + "dra = true\nvm = true\n", "virtual machines get VFs by the name of a resource"},
      {good + "max_slice_us = 500\n", "only claims can ask for a slice"},
      {good + "user = 0\n", "user: a number of 1 to"},
      {good + "max_weight = 0\n", "max_weight: a number of 1 to 10000"},
      {good + "max_weight = 5\nreplicas = 2\n", "pods that share a VF have one weight"},
  };
  for (const auto& each : wrong) {
    const auto config = ParseConfig(each.text, "f");
    ASSERT_FALSE(config) << each.text;
    EXPECT_NE(config.error().context.find(each.says), std::string::npos) << each.text << config.error().context;
  }
  EXPECT_TRUE(ParseConfig(good, "f"));
  const auto of_machines = ParseConfig(good + "vm = true\nuser = 107\n", "f");
  ASSERT_TRUE(of_machines);
  EXPECT_TRUE(of_machines->resources[0].vm);
  EXPECT_EQ(of_machines->resources[0].user, 107);
  const auto of_claims = ParseConfig(good + "dra = true\nmax_slice_us = 500\nmax_weight = 7\n", "f");
  ASSERT_TRUE(of_claims);
  EXPECT_TRUE(of_claims->resources[0].dra);
  EXPECT_EQ(of_claims->resources[0].max_slice_us, 500);
}

TEST(KubernetesConfig, AFileThatIsNotThereOrTooLong) {
  EXPECT_FALSE(ReadConfig("/nowhere/kubernetes.toml"));
  const auto endless = ReadConfig("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_NE(endless.error().context.find("more than 65536 bytes"), std::string::npos) << endless.error().context;
}

}  // namespace
}  // namespace vgpud::kubernetes
