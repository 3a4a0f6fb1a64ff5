// SPDX-License-Identifier: Apache-2.0
// Doors: whose names are whose, and that their tenants are bounded without being configured.
#include "vgpud/tenants/doors.h"

#include <gtest/gtest.h>

#include "vgpud/control/permissions.h"
#include "vgpud/model/api.h"
#include "vgpud/registry/vf_costs.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

std::vector<GpuConfig> OneGpu() {
  GpuConfig gpu;
  gpu.gpu_vram_bytes = 4 * kGiB;
  gpu.soft_gpu_threads = 2;
  return {gpu};
}
const Host kHost = HostOf(OneGpu(), 64 * kGiB);

Quota InForceOf(std::initializer_list<const char*> settings, const char* name = "slurm") {
  Tenants tenants;
  for (const char* setting : settings) EXPECT_TRUE(SetInTenant(&tenants, std::string(name) + "." + setting)) << setting;
  const auto tenant = FindTenant(tenants, name);
  EXPECT_TRUE(tenant);
  return InForce(**tenant, kHost);
}

TEST(DoorsTest, NamesHaveDoors) {
  EXPECT_EQ("slurm", UsualTenantOf("slurm-7-0"));
  EXPECT_EQ("kubernetes", UsualTenantOf("k8s-quarter-0"));
  for (const char* name : {"slurm", "slurmx-1", "a-slurm-7-0", "k8sx", "guest-a", ""}) {
    EXPECT_EQ("", UsualTenantOf(name));
    EXPECT_EQ(nullptr, DoorOfVf(name)) << name;
  }
  for (const Door& door : kDoors) {
    EXPECT_TRUE(control::IsValidName(door.tenant));
    EXPECT_TRUE(control::IsValidName(std::string(door.prefix) + "x"));
  }
}

TEST(DoorsTest, ADoorMakesVfsOnlyForWhoAsksIt) {
  EXPECT_TRUE(HasUsers("team-a"));
  EXPECT_FALSE(HasUsers(""));
  EXPECT_FALSE(HasUsers("slurm"));
}

// Of each row of the table.
TEST(DoorsTest, EverythingIsBoundedWithoutBeingConfigured) {
  for (const Door& door : kDoors) {
    const Quota quota = InForceOf({}, std::string(door.tenant).c_str());
    for (const ResourceRow& row : kResourceRows) {
      if (row.together) {
        EXPECT_TRUE(quota.together[row.resource]) << row.key;
        EXPECT_GT(kHost.all[row.resource], 0U) << row.key;
      }
      if (row.knob) {
        EXPECT_TRUE(quota.each[row.resource]) << row.key;
      }
    }
  }
  EXPECT_FALSE(InForceOf({"vfs=1"}, "team-a").together[Resource::kVram]) << "of another tenant nothing";
}

TEST(DoorsTest, OneVfHasWhatAWeightOf1000Gives) {
  const Quota quota = InForceOf({});
  EXPECT_EQ(1000U, quota.each[Resource::kWeight]);
  EXPECT_EQ(20'000U, quota.each[Resource::kSlice]) << "ten times the base slice";
  EXPECT_EQ(uint64_t{kDefaultPriority}, quota.each[Resource::kPriority]);
  for (const Resource none : {Resource::kGroup, Resource::kGuarantee, Resource::kBurst, Resource::kWakeFirst})
    EXPECT_EQ(0U, quota.each[none]) << RowOf(none).key;
  const auto tenant = FindTenant({}, "slurm");
  Amounts more;
  more[Resource::kGroup] = 1;
  const auto refusal = WhyNotEach(**tenant, quota, {}, more);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(
      "group is not for VFs of tenant slurm (as long as the configuration does not say more); what they may "
      "have stands in [tenant.slurm]",
      refusal->why);
}

TEST(DoorsTest, TheConfigurationSaysMoreOrLess) {
  const Quota quota = InForceOf({"weight_each=5000", "slice_us=none", "vfs=4", "vram=1GiB"});
  EXPECT_EQ(5000U, quota.each[Resource::kWeight]);
  EXPECT_EQ(0U, quota.each[Resource::kSlice]);
  EXPECT_EQ(4U, quota.together[Resource::kVfs]);
  EXPECT_EQ(kGiB, quota.together[Resource::kVram]);
  EXPECT_EQ(HostMemoryFor(kGiB, 4), quota.together[Resource::kHostMemory]) << "it goes with its vram";
  EXPECT_EQ(0U, quota.each[Resource::kGuarantee]) << "of which nothing is said";
}

TEST(DoorsTest, AHostHasWhatItsGpusHave) {
  EXPECT_EQ(4 * kGiB, kHost.all[Resource::kVram]);
  EXPECT_EQ(64 * kGiB, kHost.all[Resource::kRam]);
  EXPECT_EQ(1'000'000U, kHost.all[Resource::kGuarantee]);
  EXPECT_EQ(control::kMaxVfs, kHost.all[Resource::kVfs]);
  EXPECT_EQ(control::kMaxVfs * CostsOf(VfSpec{}, {.vram_is_ram = true, .threads = 2})[Resource::kThreads],
            kHost.all[Resource::kThreads]);
  auto gpus = OneGpu();
  gpus[0].gpu_vram_bytes = 0;
  EXPECT_EQ(64 * kGiB, HostOf(gpus, 64 * kGiB).all[Resource::kVram]) << "the soft GPU has the host's memory";
}

VfSpec Named(const char* name, const char* tenant) {
  VfSpec spec;
  spec.name = name;
  spec.tenant = tenant;
  return spec;
}

TEST(DoorsTest, ItsNamesAreForItsOwnUsers) {
  const Rights team{May::kManage, "team-a", "alice"}, slurm{May::kManage, "slurm", "slurm"}, all{};
  EXPECT_FALSE(WhyNotMade(team, Named("guest-a", "team-a")));
  const auto why = WhyNotMade(team, Named("slurm-7-0", "team-a"));
  ASSERT_TRUE(why);
  EXPECT_EQ(ErrorKind::kForbidden, why->kind);
  EXPECT_EQ(
      "user alice may not make a VF called slurm-7-0: names that begin with slurm- are for jobs of Slurm "
      "(docs/tenants.md); ask who administers this host",
      why->error);
  EXPECT_TRUE(WhyNotMade(team, Named("k8s-a", "team-a")));
  EXPECT_TRUE(WhyNotMade(slurm, Named("k8s-a", "slurm"))) << "each door has its own";
  EXPECT_FALSE(WhyNotMade(slurm, Named("slurm-7-0", "slurm")));
  EXPECT_FALSE(WhyNotMade(all, Named("slurm-7-0", "jobs"))) << "as a site has it that gives jobs another tenant";
}

TEST(DoorsTest, NamesThatTheHookOfLibvirtGivesAreNotForUsersOfATenant) {
  for (const char* name : {"guest-a-vgpud0", "guest-vgpud12", "a-vgpud0-vgpud1"}) {
    EXPECT_TRUE(IsNameForDomain(name)) << name;
    EXPECT_TRUE(WhyNotMade({May::kManage, "team-a", "alice"}, Named(name, "team-a"))) << name;
    EXPECT_FALSE(WhyNotMade({}, Named(name, "team-a"))) << "the hook, as root";
  }
  for (const char* name : {"guest-a", "vgpud0", "guest-vgpud", "guest-vgpud0-a", "0", ""})
    EXPECT_FALSE(IsNameForDomain(name)) << name;
}

TEST(DoorsTest, NoDomainHasAVfOfADoor) {
  VfSpec spec = Named("slurm-7-0", "slurm");
  spec.domain = {"guest-a", "43979400-ac7a-42f1-b64e-09e640ed9d0d", true};
  EXPECT_TRUE(WhyNotMade({}, spec));
  EXPECT_TRUE(WhyNotInDomain("k8s-quarter-0"));
  EXPECT_FALSE(WhyNotInDomain("guest-a-vgpud0"));
}

}  // namespace
}  // namespace vgpud::daemon
