// SPDX-License-Identifier: Apache-2.0
// Tenants: whose VFs are whose, and how much the VFs of one may have, each and together, on all GPUs. The site is the
// one that all VFs are of. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vgpud/tenants/resources.h"

namespace vgpud::daemon {

struct Quota {
  Limits together;  // of what adds up
  Limits each;      // of one VF
};
struct Tenant {
  std::string name;  // empty: the site
  Quota quota;       // as configured
};
using Tenants = std::vector<Tenant>;

// "team-a.vram=8GiB": one key of one tenant, which `tenants` gets if it has it not.
[[nodiscard]] Result<void> SetInTenant(Tenants* tenants, std::string_view setting);
// "vram=8GiB", of all VFs of this host.
[[nodiscard]] Result<void> SetInSite(Tenant* site, std::string_view setting);
// Of both.
std::vector<std::string> QuotaKeys();
// The tenants of doors are there without being configured. The error names what there is that is near.
[[nodiscard]] Result<const Tenant*> FindTenant(const Tenants& tenants, std::string_view name);

// The memory of the host that goes with a quota of VRAM: half of the VRAM, and 256 MiB for each VF, as VFs have that
// are told nothing else (model/api.h). Where the number of VFs is not limited: for each that has 256 MiB of VRAM.
uint64_t HostMemoryFor(uint64_t vram_bytes, std::optional<uint64_t> vfs);
// A tenant, configured or not, or the site, and what its VFs have and may have.
struct TenantReport {
  std::string name;  // empty: the site
  Quota quota;       // in force
  Amounts use;
  double share = 0;  // of GPUs, while all VFs that are not paused have work
};
// What limits follow from. A tenant may be a user, who has no quota of his own (owner.h).
struct Host {
  Amounts all;      // that it can give, to all VFs together
  Amounts door_vf;  // the most that one VF of a door may have when nobody says more (tenants/doors.h)
};
// With what follows from what is configured: host memory from VRAM, no slices and groups where weights are limited; for
// the site as much RAM as the host has; for the tenant of a door, and for a user, a limit of everything; of VFs so many
// as one may have.
Quota InForce(const Tenant& tenant, const Host& host);

struct QuotaRefusal {
  std::string why;    // with the figures
  std::string field;  // of the request
};
// May one VF, which had `before`, have `after`? And may all of `tenant`? `in_force`: its quota. What was too much
// before, as the quota has become less since, is no obstacle unless it becomes more.
std::optional<QuotaRefusal> WhyNotEach(const Tenant& tenant, const Quota& in_force, const Amounts& before,
                                       const Amounts& after);
std::optional<QuotaRefusal> WhyNotTogether(const Tenant& tenant, const Quota& in_force, const Amounts& before,
                                           const Amounts& after);

}  // namespace vgpud::daemon
