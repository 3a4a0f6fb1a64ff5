// SPDX-License-Identifier: Apache-2.0
// What VFs may have: the one place where a VF, as it would be after all that is said of it, meets the limits of its
// tenant and of the site, whoever wants it so.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "vgpud/limits/vf_costs.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {
namespace {

void Add(const Amounts& more, Amounts* sum) {
  for (const ResourceRow& row : kResourceRows)
    if (row.together) (*sum)[row.resource] += more[row.resource];
}
void Take(const Amounts& less, Amounts* sum) {
  for (const ResourceRow& row : kResourceRows)
    if (row.together) (*sum)[row.resource] -= less[row.resource];
}

ApiError Refused(const std::string& vf, QuotaRefusal refusal) {
  return {ErrorKind::kConflict, fmt::format("vf \"{}\": {}", vf, refusal.why), std::move(refusal.field)};
}

}  // namespace

void VfRegistry::SetLimits(Tenants tenants, Tenant site) {
  tenants_ = std::move(tenants);
  site_ = std::move(site);
  LookForRoom();
}

Amounts VfRegistry::CostOf(const VfSpec& spec) const {
  const auto gpu = FindGpu(spec.gpu);
  const GpuConfig& config = gpu ? (*gpu)->config() : gpus_.front()->config();  // one that is lost may be of none
  return CostsOf(spec, {.vram_is_ram = !config.gpu.is_cuda(), .threads = config.soft_gpu_threads});
}

Quota VfRegistry::InForce(const Tenant& whose) const {
  return daemon::InForce(whose, HostOf(configs_, around_.config.host_ram_bytes));
}

Amounts VfRegistry::UseOf(const Tenant& whose) const {
  Amounts use;
  const auto add = [&](const VfSpec& spec) {
    if (whose.name.empty() || spec.tenant == whose.name) Add(CostOf(spec), &use);
  };
  for (const auto& [id, vf] : vfs_) add(vf->spec());
  // They may come back; until then they take nothing of the host.
  for (const auto& [name, lost] : lost_)
    if (!whose.name.empty()) add(lost.spec);
  return use;
}

std::vector<TenantReport> VfRegistry::ListTenants() const {
  std::map<std::string, TenantReport> all;
  all[""].quota = InForce(site_);
  for (const Tenant& tenant : tenants_) all[tenant.name];
  for (const auto& [id, vf] : vfs_) {
    const double share = vf->Report().share;
    all[""].share += share;
    if (const std::string& name = vf->spec().tenant; !name.empty()) all[name].share += share;
  }
  std::vector<TenantReport> list;
  for (auto& [name, report] : all) {
    report.name = name;
    report.use = UseOf(Tenant{name, {}});
    if (const auto tenant = FindTenant(tenants_, name); tenant && !name.empty()) report.quota = InForce(**tenant);
    list.push_back(report);
  }
  return list;
}

std::optional<ApiError> VfRegistry::WhyNotOneMore(const Tenant& whose, const VfSpec& spec, bool alone) const {
  const Quota quota = InForce(whose);
  const Amounts cost = CostOf(spec), before = alone ? Amounts() : UseOf(whose);
  if (auto refusal = WhyNotEach(whose, quota, {}, cost)) return Refused(spec.name, std::move(*refusal));
  Amounts after = before;
  Add(cost, &after);
  if (auto refusal = WhyNotTogether(whose, quota, before, after)) return Refused(spec.name, std::move(*refusal));
  return std::nullopt;
}

std::optional<ApiError> VfRegistry::WhyNotForTenant(const VfSpec& spec, bool alone) const {
  if (spec.tenant.empty()) return std::nullopt;
  const auto tenant = FindTenant(tenants_, spec.tenant);
  if (!tenant) return ApiError{ErrorKind::kInvalid, tenant.error().context, "tenant"};
  return WhyNotOneMore(**tenant, spec, alone);
}

std::optional<ApiError> VfRegistry::WhyNotForSite(const VfSpec& spec, bool alone) const {
  return WhyNotOneMore(site_, spec, alone);
}

std::optional<ApiError> VfRegistry::WhyNotInRam(const VfSpec& spec) const {
  Tenant host;
  host.quota.together[Resource::kRam] = site_.quota.together[Resource::kRam];
  return WhyNotOneMore(host, spec, false);
}

ApiResult<void> VfRegistry::CheckLimits(const std::vector<Part>& parts) const {
  struct Sums {
    const Tenant* whose;
    Quota quota;
    Amounts before, after;
  };
  std::map<std::string, Sums> all;
  for (const Part& part : parts)
    for (const Wanted& wanted : part.vfs) {
      const VfSpec& was = wanted.vf->spec();
      VfSpec is = was;
      is.view = wanted.view;
      const auto tenant = FindTenant(tenants_, was.tenant);  // none: nobody's, or of one without quotas
      for (const Tenant* whose : {tenant ? *tenant : nullptr, &site_}) {
        if (whose == nullptr) continue;
        auto found = all.find(whose->name);
        if (found == all.end()) {
          const Amounts use = UseOf(*whose);
          found = all.insert({whose->name, {whose, InForce(*whose), use, use}}).first;
        }
        Sums& sums = found->second;
        if (auto refusal = WhyNotEach(*whose, sums.quota, CostOf(was), CostOf(is)))
          return tl::unexpected(Refused(was.name, std::move(*refusal)));
        Add(CostOf(is), &sums.after);
        Take(CostOf(was), &sums.after);
      }
    }
  for (const auto& [name, sums] : all)
    if (const auto refusal = WhyNotTogether(*sums.whose, sums.quota, sums.before, sums.after))
      return ApiFail(ErrorKind::kConflict, refusal->why, refusal->field);
  return {};
}

}  // namespace vgpud::daemon
