// SPDX-License-Identifier: Apache-2.0
// Quotas of tenants: how they are written, and what they refuse.
#include "vgpud/tenants/tenants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "vgpud/host/share_limits.h"

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
  const Quota &a = tenants[0].quota, &b = tenants[1].quota;
  EXPECT_EQ(4U, a.together[Resource::kVfs]);
  EXPECT_EQ(8 * kGiB, a.together[Resource::kVram]);
  EXPECT_EQ(1'500'000U, a.together[Resource::kGuarantee]);
  EXPECT_EQ(2U, a.each[Resource::kPriority]);
  EXPECT_EQ(400U, a.together[Resource::kWeight]);
  EXPECT_EQ(3U, b.together[Resource::kVfs]) << "the last word counts";
  EXPECT_EQ(250'000U, b.together[Resource::kGuarantee]);
  EXPECT_FALSE(b.together[Resource::kVram]);
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

Tenant Of(std::initializer_list<const char*> settings) {
  Tenants tenants;
  for (const char* setting : settings) EXPECT_TRUE(SetInTenant(&tenants, std::string("team-a.") + setting)) << setting;
  return tenants.empty() ? Tenant{"team-a", {}} : tenants.front();
}

Tenant Site(std::initializer_list<const char*> settings) {
  Tenant site;
  for (const char* setting : settings) EXPECT_TRUE(SetInSite(&site, setting)) << setting;
  return site;
}

// What is not given is 0.
Amounts Have(std::initializer_list<std::pair<Resource, uint64_t>> amounts) {
  Amounts all;
  for (const auto& [resource, amount] : amounts) all[resource] = amount;
  return all;
}

constexpr uint64_t kHostRam = 64 * kGiB;
const Host kHost{Have({{Resource::kRam, kHostRam}}), {}};

std::string WhyTogether(const Tenant& tenant, const Amounts& before, const Amounts& after, bool field = false) {
  const auto refusal = WhyNotTogether(tenant, InForce(tenant, kHost), before, after);
  return refusal ? (field ? refusal->field : refusal->why) : "";
}
std::string WhyEach(const Tenant& tenant, const Amounts& before, const Amounts& after, bool field = false) {
  const auto refusal = WhyNotEach(tenant, InForce(tenant, kHost), before, after);
  return refusal ? (field ? refusal->field : refusal->why) : "";
}

TEST(TenantsTest, MoreThanTheQuotaIsRefusedAndAsMuchIsNot) {
  const Tenant tenant = Of({"vfs=2", "vram=1GiB", "weight=300", "guarantee=50%"});
  EXPECT_EQ("",
            WhyTogether(tenant, {}, Have({{Resource::kVfs, 2}, {Resource::kVram, kGiB}, {Resource::kWeight, 300}})));
  EXPECT_EQ("tenant", WhyTogether(tenant, Have({{Resource::kVfs, 2}}), Have({{Resource::kVfs, 3}}), true));
  EXPECT_EQ("weight", WhyTogether(tenant, Have({{Resource::kWeight, 300}}), Have({{Resource::kWeight, 301}}), true));
  const auto why = WhyTogether(tenant, Have({{Resource::kVram, kGiB / 2}}), Have({{Resource::kVram, kGiB + 1}}));
  EXPECT_NE(std::string::npos, why.find("may have 1GiB vram together, its VFs have 512MiB")) << why;
}

TEST(TenantsTest, WhatWasTooMuchAlreadyIsNoObstacle) {
  const Tenant lowered = Of({"guarantee=10%", "priority=1", "slice_us=2000"});
  EXPECT_EQ("", WhyTogether(lowered, Have({{Resource::kGuarantee, 400'000}}), Have({{Resource::kGuarantee, 300'000}})));
  EXPECT_NE("", WhyTogether(lowered, Have({{Resource::kGuarantee, 400'000}}), Have({{Resource::kGuarantee, 400'001}})));
  EXPECT_EQ("", WhyEach(lowered, Have({{Resource::kSlice, 9000}}), Have({{Resource::kSlice, 8000}})));
  EXPECT_NE("", WhyEach(lowered, Have({{Resource::kSlice, 9000}}), Have({{Resource::kSlice, 9001}})));
}

TEST(TenantsTest, WithoutAQuotaThereIsNoLimit) {
  Amounts much;
  for (const ResourceRow& row : kResourceRows) much[row.resource] = uint64_t{1} << 60;
  EXPECT_EQ("", WhyTogether(Of({}), {}, much));
  EXPECT_EQ("", WhyEach(Of({}), {}, much));
}

TEST(TenantsTest, AUserIsBoundedLikeATenantThatNobodyConfigured) {
  const Tenant user{"user 1000", {}};
  Host host;
  for (const ResourceRow& row : kResourceRows) host.all[row.resource] = 1000;
  const Quota quota = InForce(user, host);
  for (const ResourceRow& row : kResourceRows)
    EXPECT_TRUE(!row.together || quota.together[row.resource].value_or(UINT64_MAX) <= 1000u) << row.key;
  EXPECT_EQ(share_limits::kVfs.each, quota.together[Resource::kVfs]) << "not all that there are";
  Amounts most, more;
  most[Resource::kVfs] = share_limits::kVfs.each;
  more[Resource::kVfs] = share_limits::kVfs.each + 1;
  EXPECT_FALSE(WhyNotTogether(user, quota, {}, most));
  const auto why = WhyNotTogether(user, quota, most, more);
  ASSERT_TRUE(why);
  EXPECT_EQ(
      "user 1000 may have 256 vfs together (as long as the configuration does not say more), its VFs have 256 and "
      "would have 257: give it less, destroy another of its VFs, or raise vfs in a tenant for that user",
      why->why);
}

// Of each row of the table: its keys are read, and what is more than they say is refused.
TEST(TenantsTest, EachResourceHasAQuota) {
  std::set<std::string> keys;
  for (const std::string& key : QuotaKeys()) {
    EXPECT_TRUE(keys.insert(key).second) << key;
    const auto& row = *std::find_if(kResourceRows.begin(), kResourceRows.end(), [&](const ResourceRow& each) {
      return key == each.key || key == std::string(each.key) + std::string(kEachSuffix);
    });
    const bool each = key != row.key || !row.together;
    const char* text = row.unit == ResourceUnit::kBytes  ? "1MiB"
                       : row.unit == ResourceUnit::kPart ? "50%"
                       : row.knob == Knob::kSlice        ? "1000"
                                                         : "1";
    Tenant tenant = Of({(key + "=" + text).c_str()});
    const auto& most = (each ? tenant.quota.each : tenant.quota.together)[row.resource];
    ASSERT_TRUE(most) << key;
    const Amounts as_much = Have({{row.resource, *most}}), more = Have({{row.resource, *most + 1}});
    const auto why = each ? &WhyEach : &WhyTogether;
    EXPECT_EQ("", why(tenant, {}, as_much, false)) << key;
    const std::string refused = why(tenant, {}, more, false);
    EXPECT_NE(std::string::npos, refused.find("raise " + key + " in [tenant.team-a]")) << key << ": " << refused;
    EXPECT_NE("", why(tenant, {}, more, true)) << key;
    EXPECT_EQ("", (each ? &WhyTogether : &WhyEach)(tenant, {}, more, false)) << key << " says nothing of the other";
  }
  for (const ResourceRow& row : kResourceRows) {
    EXPECT_TRUE(keys.contains(std::string(row.key)));
    EXPECT_EQ(row.together && row.resource != Resource::kVfs, keys.contains(std::string(row.key) + "_each")) << row.key;
  }
}

TEST(TenantsTest, HostMemoryGoesWithVram) {
  EXPECT_EQ(kGiB / 4 + kGiB / 2, HostMemoryFor(kGiB, 1));
  EXPECT_EQ(kGiB + kGiB / 2, HostMemoryFor(kGiB, {})) << "VFs of 256 MiB";
  EXPECT_EQ(kGiB + kGiB / 2, HostMemoryFor(kGiB, 4));
  EXPECT_EQ((uint64_t{1} << 19) + kGiB / 4, HostMemoryFor(uint64_t{1} << 20, 1024)) << "no more VFs than fit";
  EXPECT_EQ(kGiB / 4, HostMemoryFor(0, {}));
  const Tenant derived = Of({"vfs=1", "vram=1MiB"});
  EXPECT_EQ("", WhyTogether(derived, {}, Have({{Resource::kHostMemory, HostMemoryFor(1 << 20, 1)}})));
  const auto why = WhyTogether(derived, {}, Have({{Resource::kHostMemory, uint64_t{1} << 40}}));
  EXPECT_NE(std::string::npos, why.find("may have 256.5MiB host_memory together (which goes with its vram)")) << why;
  const Tenant said = Of({"vram=1MiB", "host_memory=2GiB"});
  EXPECT_EQ("", WhyTogether(said, {}, Have({{Resource::kHostMemory, 2 * kGiB}})));
}

TEST(TenantsTest, WhereWeightsAreLimitedThereIsNoWayAround) {
  for (const char* key : {"weight=300", "weight_each=300"}) {
    const Tenant tenant = Of({key});
    EXPECT_EQ("slice_us", WhyEach(tenant, {}, Have({{Resource::kSlice, 100}}), true));
    EXPECT_EQ("group", WhyEach(tenant, {}, Have({{Resource::kGroup, 1}}), true));
    EXPECT_NE(std::string::npos,
              WhyEach(tenant, {}, Have({{Resource::kSlice, 100}})).find("not for VFs of tenant team-a, whose weight"));
    EXPECT_EQ("", WhyEach(tenant, Have({{Resource::kSlice, 100}}), Have({{Resource::kSlice, 100}})));
  }
  EXPECT_EQ("", WhyEach(Of({"weight=300", "slice_us=4000"}), {}, Have({{Resource::kSlice, 4000}})));
  EXPECT_NE("", WhyEach(Of({"weight=300", "group=3"}), {}, Have({{Resource::kGroup, 5}})));
  EXPECT_NE("", WhyEach(Of({"group=none"}), Have({{Resource::kGroup, 5}}), Have({{Resource::kGroup, 4}})))
      << "another group is not less";
}

TEST(TenantsTest, TheSiteHasWhatTheHostHas) {
  const Tenant site = Site({"vfs=8", "priority=2"});
  EXPECT_EQ(kHostRam, InForce(site, kHost).together[Resource::kRam]);
  EXPECT_FALSE(InForce(Of({}), kHost).together[Resource::kRam]) << "a tenant has its own quotas only";
  const auto why = WhyTogether(site, Have({{Resource::kRam, kHostRam}}), Have({{Resource::kRam, kHostRam + 1}}));
  EXPECT_NE(std::string::npos, why.find("this host may have 64GiB ram together (what the host has)")) << why;
  EXPECT_NE(std::string::npos, why.find("raise ram in [site]")) << why;
  EXPECT_EQ("priority", WhyEach(site, {}, Have({{Resource::kPriority, 3}}), true));
  EXPECT_EQ(kGiB, InForce(Site({"ram=1GiB"}), kHost).together[Resource::kRam]);
  Tenant wrong;
  EXPECT_EQ("site has no key \"ramm\": did you mean ram?", SetInSite(&wrong, "ramm=1GiB").error().context);
  EXPECT_FALSE(SetInSite(&wrong, "ram"));
}

}  // namespace
}  // namespace vgpud::daemon
