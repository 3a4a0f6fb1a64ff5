// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_limits.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "sched/knobs.h"
#include "vgpud/registry/vf_costs.h"
#include "vgpud/tenants/owner.h"

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

VfLimits::VfLimits(const ServedGpus& gpus, const VfRegistry& vfs, const Config& config)
    : gpus_(gpus),
      vfs_(vfs),
      host_(HostOf(config.gpus, config.host_ram_bytes)),
      tenants_(config.tenants),
      site_(config.site) {}

void VfLimits::Set(Tenants tenants, Tenant site) {
  tenants_ = std::move(tenants);
  site_ = std::move(site);
  changed_();
}

Amounts VfLimits::CostOf(const VfSpec& spec) const {
  const auto gpu = gpus_.Find(spec.gpu);
  const GpuConfig& config = gpu ? (*gpu)->config() : gpus_.first().config();  // one that is lost may be of none
  return CostsOf(spec, {.vram_is_ram = !config.gpu.is_cuda(), .threads = config.soft_gpu_threads});
}

Result<Tenant> VfLimits::Owner(const VfSpec& spec) const {
  const std::string name = OwnerOf(spec);
  if (IsUser(name)) return Tenant{name, {}};
  return *TRY(FindTenant(tenants_, name));
}

Amounts VfLimits::UseOf(const Tenant& whose) const {
  Amounts use;
  const auto add = [&](const VfSpec& spec) {
    if (whose.name.empty() || OwnerOf(spec) == whose.name) Add(CostOf(spec), &use);
  };
  for (const auto& [id, vf] : vfs_.all()) add(vf->spec());
  // Lost ones may come back; until then they take nothing of the host.
  if (whose.name.empty()) return use;
  for (const VfSpec& lost : vfs_.lost().Specs()) add(lost);
  return use;
}

uint64_t VfLimits::PriorityOf(const VfSpec& spec) const {
  const auto tenant = FindTenant(tenants_, spec.tenant);
  const uint64_t own = KnobOf(spec.view, Knob::kPriority);
  return own == 0 && tenant ? (*tenant)->quota.each[Resource::kPriority].value_or(0) : own;
}

std::vector<TenantReport> VfLimits::List() const {
  std::map<std::string, TenantReport> all;
  all[""].quota = InForce(site_);
  for (const Tenant& tenant : tenants_) all[tenant.name];
  for (const auto& [id, vf] : vfs_.all()) {
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

std::optional<ApiError> VfLimits::WhyNotOneMore(const Tenant& whose, const VfSpec& spec, bool alone) const {
  const Quota quota = InForce(whose);
  const Amounts cost = CostOf(spec), before = alone ? Amounts() : UseOf(whose);
  if (auto refusal = WhyNotEach(whose, quota, {}, cost)) return Refused(spec.name, std::move(*refusal));
  Amounts after = before;
  Add(cost, &after);
  if (auto refusal = WhyNotTogether(whose, quota, before, after)) return Refused(spec.name, std::move(*refusal));
  return std::nullopt;
}

std::optional<ApiError> VfLimits::WhyNotForTenant(const VfSpec& spec, bool alone) const {
  if (OwnerOf(spec).empty()) return std::nullopt;
  const auto owner = Owner(spec);
  if (!owner) return ApiError{ErrorKind::kInvalid, owner.error().context, "tenant"};
  return WhyNotOneMore(*owner, spec, alone);
}

std::optional<ApiError> VfLimits::WhyNotForSite(const VfSpec& spec, bool alone) const {
  return WhyNotOneMore(site_, spec, alone);
}

std::optional<ApiError> VfLimits::WhyNotInRam(const VfSpec& spec) const {
  Tenant host;
  host.quota.together[Resource::kRam] = site_.quota.together[Resource::kRam];
  return WhyNotOneMore(host, spec, false);
}

ApiResult<void> VfLimits::Check(const std::vector<Change>& changes) const {
  struct Sums {
    Tenant whose;
    Quota quota;
    Amounts before, after;
  };
  std::map<std::string, Sums> all;
  for (const auto& [was, is] : changes) {
    const Amounts cost_before = CostOf(was), cost_after = CostOf(is);
    const auto owner = Owner(was);  // none: root's, or of one without quotas
    std::vector<Tenant> of{site_};
    if (owner) of.insert(of.begin(), *owner);
    for (const Tenant& whose : of) {
      auto found = all.find(whose.name);
      if (found == all.end()) {
        const Amounts use = UseOf(whose);
        found = all.insert({whose.name, {whose, InForce(whose), use, use}}).first;
      }
      Sums& sums = found->second;
      if (auto refusal = WhyNotEach(whose, sums.quota, cost_before, cost_after))
        return tl::unexpected(Refused(was.name, std::move(*refusal)));
      Add(cost_after, &sums.after);
      Take(cost_before, &sums.after);
    }
  }
  for (const auto& [name, sums] : all)
    if (const auto refusal = WhyNotTogether(sums.whose, sums.quota, sums.before, sums.after))
      return ApiFail(ErrorKind::kConflict, refusal->why, refusal->field);
  return {};
}

}  // namespace vgpud::daemon
