// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/choose.h"

#include <gtest/gtest.h>

namespace vgpud::kubernetes {
namespace {

using Ids = std::vector<std::string>;

Device Of(const std::string& id, const std::string& vf, const std::string& gpu = "", bool healthy = true) {
  return {.id = id, .vf = vf, .gpu = gpu, .numa_node = {}, .healthy = healthy};
}

Ids Chosen(const std::vector<Device>& devices, const Wish& wish) {
  const auto chosen = Choose(devices, wish);
  return chosen ? *chosen : Ids{chosen.error().context};
}

TEST(Choose, VfsBeforeReplicasOfOneVf) {
  const std::vector<Device> devices = {Of("a0", "a"), Of("a1", "a"), Of("b0", "b"), Of("b1", "b")};
  EXPECT_EQ(Chosen(devices, {{"a0", "a1", "b0", "b1"}, {}, 2}), (Ids{"a0", "b0"}));
  EXPECT_EQ(Chosen(devices, {{"a0", "a1", "b0", "b1"}, {"b1"}, 3}), (Ids{"b1", "a0", "a1"}));
  EXPECT_EQ(Chosen(devices, {{"a1", "b0", "b1"}, {}, 1}), (Ids{"b0"})) << "somebody has a0, so a is shared";
}

TEST(Choose, OverGpus) {
  const std::vector<Device> devices = {Of("a", "a", "0"), Of("b", "b", "0"), Of("c", "c", "1"), Of("d", "d", "1")};
  EXPECT_EQ(Chosen(devices, {{"a", "b", "c", "d"}, {}, 2}), (Ids{"a", "c"}));
  EXPECT_EQ(Chosen(devices, {{"a", "b", "c", "d"}, {"b"}, 3}), (Ids{"b", "c", "a"}));
}

TEST(Choose, SickOnesLast) {
  const std::vector<Device> devices = {Of("a", "a", "", false), Of("b", "b"), Of("c", "c")};
  EXPECT_EQ(Chosen(devices, {{"a", "b", "c"}, {}, 3}), (Ids{"b", "c", "a"}));
}

TEST(Choose, WhatCantBe) {
  const std::vector<Device> devices = {Of("a", "a"), Of("b", "b")};
  const struct {
    Wish wish;
    const char* says;
  } wrong[] = {
      {{{"a", "x"}, {}, 1}, "\"x\" is none of the resource's"},
      {{{"a"}, {"b"}, 1}, "\"b\" is none of the available ones"},
      {{{"a", "a"}, {}, 1}, "\"a\" is there twice"},
      {{{"a", "b"}, {"a", "a"}, 2}, "\"a\" is there twice"},
      {{{"a", "b"}, {}, 3}, "can't be chosen"},
      {{{"a", "b"}, {}, -1}, "can't be chosen"},
      {{{"a", "b"}, {"a", "b"}, 1}, "can't be chosen"},
  };
  for (const auto& each : wrong) {
    const auto chosen = Choose(devices, each.wish);
    ASSERT_FALSE(chosen) << each.says;
    EXPECT_NE(chosen.error().context.find(each.says), std::string::npos) << chosen.error().context;
  }
  EXPECT_EQ(Chosen(devices, {{}, {}, 0}), Ids{});
}

}  // namespace
}  // namespace vgpud::kubernetes
