// SPDX-License-Identifier: Apache-2.0
// What VFs may have: the one place where a VF, as it would be after all that is said of it, meets the limits of its
// tenant and of the site, whoever wants it so. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vgpud/model/api_error.h"
#include "vgpud/model/vf_spec.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_registry.h"
#include "vgpud/tenants/tenants.h"

namespace vgpud::daemon {

class VfLimits {
 public:
  // `gpus` and `vfs` outlive this. `config`: whose limits hold at first.
  VfLimits(const ServedGpus& gpus, const VfRegistry& vfs, const Config& config);

  // What tenants, and all VFs together, may have from now on; VFs that are there stay.
  void Set(Tenants tenants, Tenant site);
  // Calls `changed` after each Set.
  void OnChange(std::function<void()> changed) { changed_ = std::move(changed); }
  // The site, then those tenants that are configured, and those that VFs are of.
  std::vector<TenantReport> List() const;
  // Its priority among new VFs that wait for room.
  uint64_t PriorityOf(const VfSpec& spec) const;

  // Why such a VF may not be made, if so: by its owner's limits, by the site's. `alone`: if there were no other VF.
  std::optional<ApiError> WhyNotForTenant(const VfSpec& spec, bool alone) const;
  std::optional<ApiError> WhyNotForSite(const VfSpec& spec, bool alone) const;
  // Why the memory of the host is not enough for it, if so.
  std::optional<ApiError> WhyNotInRam(const VfSpec& spec) const;
  // May all of these VFs be changed so, together?
  struct Change {
    VfSpec was;
    VfSpec is;
  };
  ApiResult<void> Check(const std::vector<Change>& changes) const;

 private:
  // Who answers for it, and may have as much as that. An error: it is no configured tenant.
  Result<Tenant> Owner(const VfSpec& spec) const;
  Amounts CostOf(const VfSpec& spec) const;
  Quota InForce(const Tenant& whose) const { return daemon::InForce(whose, host_); }
  Amounts UseOf(const Tenant& whose) const;
  std::optional<ApiError> WhyNotOneMore(const Tenant& whose, const VfSpec& spec, bool alone) const;

  const ServedGpus& gpus_;
  const VfRegistry& vfs_;
  const Host host_;
  Tenants tenants_;
  Tenant site_;
  std::function<void()> changed_ = [] {};
};

}  // namespace vgpud::daemon
