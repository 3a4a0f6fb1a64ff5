// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/tenants.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "sched/knobs.h"
#include "vgpud/control/api.h"
#include "vgpud/control/nearest.h"
#include "vgpud/tenants/named_setting.h"

namespace vgpud::daemon {
namespace {

constexpr double kMostGpus = 64;

template <uint64_t kMost>
Result<uint64_t> ParseCount(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > kMost)
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not a number from 0 to {}", text, kMost));
  return value;
}
constexpr uint64_t kMostWeight = 1'000'000'000;  // more than all VFs can have together
std::string ShowCount(uint64_t count) { return fmt::format("{}", count); }

Result<uint64_t> ParseVram(std::string_view text) {
  const auto bytes = ParseBytes(text);
  if (!bytes) return Fail(std::errc::invalid_argument, fmt::format("vram {}", bytes.error().context));
  return *bytes;
}

Result<uint64_t> ParseGuarantee(std::string_view text) {
  const uint64_t parts = TRY(ParsePartText("guarantee", text, kMostGpus));
  if (parts > static_cast<uint64_t>(kMostGpus) * kWhole)
    return Fail(std::errc::invalid_argument, fmt::format("guarantee {} is more than {} GPUs", text, kMostGpus));
  return parts;
}

struct Quota {
  std::string_view key;
  std::optional<uint64_t> Tenant::*most;
  Result<uint64_t> (*parse)(std::string_view text);
  uint64_t TenantUse::*used;  // null: not of its VFs together
  std::string_view field;     // of a request
  std::string (*show)(uint64_t value);
};
std::string ShowPart(uint64_t value) { return fmt::format("{:.6g}%", static_cast<double>(value) * 100 / kWhole); }
constexpr Quota kQuotas[] = {
    {"vfs", &Tenant::vfs, &ParseCount<control::kMaxVfs>, &TenantUse::vfs, "tenant", &ShowCount},
    {"vram", &Tenant::vram_bytes, &ParseVram, &TenantUse::vram_bytes, "vram_bytes", &FormatBytes},
    {"weight", &Tenant::weight, &ParseCount<kMostWeight>, &TenantUse::weight, "weight", &ShowCount},
    {"guarantee", &Tenant::guarantee, &ParseGuarantee, &TenantUse::guarantee, "guarantee", &ShowPart},
    {"priority", &Tenant::priority, [](std::string_view text) { return ParseKnobText(RowOf(Knob::kPriority), text); },
     nullptr, "priority", nullptr},
};

}  // namespace

std::vector<std::string> TenantKeys() {
  std::vector<std::string> keys;
  for (const Quota& quota : kQuotas) keys.emplace_back(quota.key);
  return keys;
}

Result<void> SetInTenant(Tenants* tenants, std::string_view text) {
  const NamedSetting setting = TRY(ParseNamedSetting("tenant", text, "team-a.vram=8GiB"));
  const auto quota =
      std::find_if(std::begin(kQuotas), std::end(kQuotas), [&](const Quota& each) { return each.key == setting.key; });
  if (quota == std::end(kQuotas))
    return Fail(std::errc::invalid_argument, fmt::format("tenant {} has no key \"{}\": {}", setting.name, setting.key,
                                                         control::DidYouMean(setting.key, TenantKeys())));
  const auto value = quota->parse(setting.value);
  if (!value)
    return Fail(std::errc::invalid_argument,
                fmt::format("tenant {}: {}: {}", setting.name, quota->key, value.error().context));
  auto found =
      std::find_if(tenants->begin(), tenants->end(), [&](const Tenant& each) { return each.name == setting.name; });
  if (found == tenants->end()) {
    tenants->emplace_back().name = setting.name;
    found = tenants->end() - 1;
  }
  (*found).*quota->most = *value;
  return {};
}

Result<const Tenant*> FindTenant(const Tenants& tenants, std::string_view name) {
  std::vector<std::string> names;
  for (const Tenant& tenant : tenants) {
    if (tenant.name == name) return &tenant;
    names.push_back(tenant.name);
  }
  return Fail(std::errc::invalid_argument,
              names.empty() ? fmt::format("there is no tenant \"{}\": the configuration has none (see "
                                          "docs/tenants.md)",
                                          name)
                            : fmt::format("there is no tenant \"{}\": {}", name, control::DidYouMean(name, names)));
}

std::optional<QuotaRefusal> WhyNotWithin(const Tenant& tenant, const TenantUse& before, const TenantUse& after) {
  for (const Quota& quota : kQuotas) {
    if (quota.used == nullptr || !(tenant.*quota.most)) continue;
    const uint64_t most = *(tenant.*quota.most), is = before.*quota.used, wanted = after.*quota.used;
    if (wanted <= most || wanted <= is) continue;
    return QuotaRefusal{
        fmt::format("tenant {} may have {} {} together, its VFs have {} and would have {}: give it less, destroy "
                    "another of its VFs, or raise {} in [tenant.{}]",
                    tenant.name, quota.show(most), quota.key, quota.show(is), quota.show(wanted), quota.key,
                    tenant.name),
        std::string(quota.field)};
  }
  return std::nullopt;
}

}  // namespace vgpud::daemon
