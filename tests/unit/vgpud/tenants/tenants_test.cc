// SPDX-License-Identifier: Apache-2.0
// Quotas of tenants: how they are written, and what they refuse.
#include "vgpud/tenants/tenants.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string WhyNotSet(std::string_view setting) {
  Tenants some;
  const auto set = SetInTenant(&some, setting);
  return set ? "" : set.error().context;
}

TEST(TenantsTest, EachKeyIsAQuota) {
  Tenants tenants;
  for (const char* setting : {"a.vfs=4", "b.vfs=1", "a.vram=8GiB", "a.guarantee=150%", "a.priority=2", "a.weight=400",
                              "b.guarantee=0.25", "b.vfs=3"})
    ASSERT_TRUE(SetInTenant(&tenants, setting)) << setting;
  ASSERT_EQ(2U, tenants.size());
  EXPECT_EQ(4U, tenants[0].vfs);
  EXPECT_EQ(8 * kGiB, tenants[0].vram_bytes);
  EXPECT_EQ(1'500'000U, tenants[0].guarantee);
  EXPECT_EQ(2U, tenants[0].priority);
  EXPECT_EQ(400U, tenants[0].weight);
  EXPECT_EQ(3U, tenants[1].vfs) << "the last word counts";
  EXPECT_EQ(250'000U, tenants[1].guarantee);
  EXPECT_FALSE(tenants[1].vram_bytes);
}

TEST(TenantsTest, WhatIsNoQuotaIsRefusedInWords) {
  EXPECT_EQ("tenant a has no key \"vrma\": did you mean vram?", WhyNotSet("a.vrma=1GiB"));
  EXPECT_NE("", WhyNotSet("a.vfs=-1"));
  EXPECT_NE("", WhyNotSet("a.vfs=1025"));
  EXPECT_NE("", WhyNotSet("a.vfs=18446744073709551617"));
  EXPECT_NE("", WhyNotSet("a.vram=8"));
  EXPECT_NE("", WhyNotSet("a.weight=-1"));
  EXPECT_NE("", WhyNotSet("a.weight=1000000001"));
  EXPECT_NE("", WhyNotSet("a.guarantee=-0.1"));
  EXPECT_NE("", WhyNotSet("a.guarantee=nan"));
  EXPECT_NE("", WhyNotSet("a.guarantee=65"));
  EXPECT_EQ("", WhyNotSet("a.guarantee=64"));
  EXPECT_NE("", WhyNotSet("a.priority=1000000"));
  EXPECT_NE("", WhyNotSet("Team A.vfs=1"));
  EXPECT_NE("", WhyNotSet("a"));
}

TEST(TenantsTest, OneThatIsNotThereIsNamedWithWhatIsNear) {
  Tenants tenants;
  ASSERT_TRUE(SetInTenant(&tenants, "team-a.vfs=1"));
  ASSERT_TRUE(FindTenant(tenants, "team-a"));
  EXPECT_EQ("there is no tenant \"team-b\": did you mean team-a?", FindTenant(tenants, "team-b").error().context);
  EXPECT_NE(std::string::npos, FindTenant({}, "x").error().context.find("has none"));
}

TEST(TenantsTest, MoreThanTheQuotaIsRefusedAndAsMuchIsNot) {
  const Tenant tenant{"team-a", 2, kGiB, 300, 500'000, {}};
  EXPECT_FALSE(WhyNotWithin(tenant, {1, kGiB / 2, 100, 0}, {2, kGiB, 300, 500'000}));
  EXPECT_EQ("tenant", WhyNotWithin(tenant, {2, 0, 0, 0}, {3, 0, 0, 0})->field);
  EXPECT_EQ("weight", WhyNotWithin(tenant, {1, 0, 300, 0}, {1, 0, 301, 0})->field);
  EXPECT_EQ("guarantee", WhyNotWithin(tenant, {}, {1, 1, 1, 500'001})->field);
  const auto refusal = WhyNotWithin(tenant, {1, kGiB / 2, 0, 0}, {2, kGiB + 1, 0, 0});
  ASSERT_TRUE(refusal);
  EXPECT_EQ("vram_bytes", refusal->field);
  EXPECT_NE(std::string::npos, refusal->why.find("may have 1GiB vram together, its VFs have 512MiB")) << refusal->why;
}

TEST(TenantsTest, WhatWasTooMuchAlreadyIsNoObstacle) {
  const Tenant lowered{"team-a", 1, kGiB, {}, 100'000, {}};
  EXPECT_FALSE(WhyNotWithin(lowered, {3, 4 * kGiB, 300, 400'000}, {3, 4 * kGiB, 300, 300'000}));
  EXPECT_TRUE(WhyNotWithin(lowered, {3, 4 * kGiB, 300, 400'000}, {3, 4 * kGiB, 300, 400'001}));
}

TEST(TenantsTest, WithoutAQuotaThereIsNoLimit) {
  EXPECT_FALSE(WhyNotWithin({"team-a", {}, {}, {}, {}, {}}, {}, {1000, 1000 * kGiB, 100'000, 64'000'000}));
}

}  // namespace
}  // namespace vgpud::daemon
