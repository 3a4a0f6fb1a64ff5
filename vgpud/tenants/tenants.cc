// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/tenants.h"

#include <fmt/core.h>

#include <algorithm>

#include "vgpud/host/share_limits.h"
#include "vgpud/model/api.h"
#include "vgpud/model/named_setting.h"
#include "vgpud/model/nearest.h"
#include "vgpud/tenants/doors.h"
#include "vgpud/tenants/owner.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kVramOfOneVf = uint64_t{256} << 20;  // where nobody says how many VFs there may be

struct QuotaKey {
  const ResourceRow* row = nullptr;
  bool each = false;
  std::string Text() const { return fmt::format("{}{}", row->key, each && row->together ? kEachSuffix : ""); }
};

std::vector<QuotaKey> AllKeys() {
  std::vector<QuotaKey> keys;
  for (const ResourceRow& row : kResourceRows) {
    keys.push_back({&row, !row.together});
    if (row.together && row.resource != Resource::kVfs) keys.push_back({&row, true});
  }
  return keys;
}

Result<void> Set(Tenant* tenant, std::string_view key, std::string_view text) {
  const std::string who = tenant->name.empty() ? "site" : fmt::format("tenant {}", tenant->name);
  const auto keys = AllKeys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const QuotaKey& each) { return each.Text() == key; });
  if (found == keys.end())
    return Fail(std::errc::invalid_argument,
                fmt::format("{} has no key \"{}\": {}", who, key, control::DidYouMean(key, QuotaKeys())));
  const auto amount = ParseAmount(*found->row, found->each, text);
  if (!amount) return Fail(std::errc::invalid_argument, fmt::format("{}: {}: {}", who, key, amount.error().context));
  (found->each ? tenant->quota.each : tenant->quota.together)[found->row->resource] = *amount;
  return {};
}

// Where the key of a limit stands.
std::string TableOf(const Tenant& tenant) {
  if (IsUser(tenant.name)) return "a tenant for that user";
  return tenant.name.empty() ? "[site]" : fmt::format("[tenant.{}]", tenant.name);
}

// "tenant team-a", "user 1000".
std::string NameOf(const Tenant& tenant) { return (IsUser(tenant.name) ? "" : "tenant ") + tenant.name; }

std::string Whose(const Tenant& tenant) {
  return tenant.name.empty() ? "VFs of this host" : fmt::format("VFs of {}", NameOf(tenant));
}

// Why there is a limit that nobody configured.
std::string_view Because(const Tenant& tenant, const QuotaKey& key) {
  if ((key.each ? tenant.quota.each : tenant.quota.together)[key.row->resource]) return "";
  if (key.row->resource == Resource::kHostMemory && tenant.quota.together[Resource::kVram])
    return " (which goes with its vram)";
  if (DoorOfTenant(tenant.name) != nullptr || IsUser(tenant.name))
    return " (as long as the configuration does not say more)";
  return key.row->resource == Resource::kRam ? " (what the host has)" : ", whose weight is limited";
}

// Of doors; the configuration says nothing of them.
const Tenant* BuiltIn(std::string_view name) {
  static const auto tenants = [] {
    std::vector<Tenant> all;
    for (const Door& door : kDoors) all.push_back({std::string(door.tenant), {}});
    return all;
  }();
  const auto found =
      std::find_if(tenants.begin(), tenants.end(), [&](const Tenant& tenant) { return tenant.name == name; });
  return found == tenants.end() ? nullptr : &*found;
}

// What of a request is to blame: what the host counts by itself is no field of one.
std::string FieldOf(const ResourceRow& row) {
  if (row.knob || row.resource == Resource::kVram || row.resource == Resource::kHostMemory)
    return std::string(row.field);
  return row.resource == Resource::kRam ? "host_memory_bytes" : "tenant";
}

}  // namespace

std::vector<std::string> QuotaKeys() {
  std::vector<std::string> keys;
  for (const QuotaKey& key : AllKeys()) keys.push_back(key.Text());
  return keys;
}

Result<void> SetInTenant(Tenants* tenants, std::string_view text) {
  const NamedSetting setting = TRY(ParseNamedSetting("tenant", text, "team-a.vram=8GiB"));
  const auto found =
      std::find_if(tenants->begin(), tenants->end(), [&](const Tenant& each) { return each.name == setting.name; });
  Tenant changed = found != tenants->end() ? *found : Tenant{setting.name, {}};
  TRY(Set(&changed, setting.key, setting.value));
  if (found != tenants->end())
    *found = std::move(changed);
  else
    tenants->push_back(std::move(changed));
  return {};
}

Result<void> SetInSite(Tenant* site, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is not KEY=VALUE (write it like vfs=8)", text));
  return Set(site, text.substr(0, equals), text.substr(equals + 1));
}

Result<const Tenant*> FindTenant(const Tenants& tenants, std::string_view name) {
  std::vector<std::string> names;
  for (const Tenant& tenant : tenants) {
    if (tenant.name == name) return &tenant;
    names.push_back(tenant.name);
  }
  if (const Tenant* const tenant = BuiltIn(name); tenant != nullptr) return tenant;
  return Fail(std::errc::invalid_argument,
              names.empty() ? fmt::format("there is no tenant \"{}\": the configuration has none (see "
                                          "docs/tenants.md)",
                                          name)
                            : fmt::format("there is no tenant \"{}\": {}", name, control::DidYouMean(name, names)));
}

uint64_t HostMemoryFor(uint64_t vram_bytes, std::optional<uint64_t> vfs) {
  const uint64_t fit = std::max<uint64_t>(1, vram_bytes / control::kMinVramBytes);
  const uint64_t usual = std::max<uint64_t>(1, (vram_bytes + kVramOfOneVf - 1) / kVramOfOneVf);
  const uint64_t count = vfs ? std::min(*vfs, fit) : usual;
  return vram_bytes / 2 + count * control::DefaultHostMemoryBytes(0);
}

Quota InForce(const Tenant& tenant, const Host& host) {
  Quota quota = tenant.quota;
  const auto usual = [](std::optional<uint64_t>& limit, uint64_t value) {
    if (!limit) limit = value;
  };
  if (quota.together[Resource::kVram])
    usual(quota.together[Resource::kHostMemory],
          HostMemoryFor(*quota.together[Resource::kVram], quota.together[Resource::kVfs]));
  // A slice of its own, or a group, gives more of the GPU than weights say.
  if (quota.together[Resource::kWeight] || quota.each[Resource::kWeight])
    for (const Resource way_around : {Resource::kSlice, Resource::kGroup}) usual(quota.each[way_around], 0);
  if (tenant.name.empty()) usual(quota.together[Resource::kRam], host.all[Resource::kRam]);
  const bool is_door = DoorOfTenant(tenant.name) != nullptr, is_user = IsUser(tenant.name);
  if (is_user) usual(quota.together[Resource::kVfs], share_limits::kVfs.each);
  for (const ResourceRow& row : kResourceRows) {
    if (row.together && (is_door || is_user)) usual(quota.together[row.resource], host.all[row.resource]);
    if (row.knob && is_door) usual(quota.each[row.resource], host.door_vf[row.resource]);
  }
  return quota;
}

std::optional<QuotaRefusal> WhyNotEach(const Tenant& tenant, const Quota& in_force, const Amounts& before,
                                       const Amounts& after) {
  for (const ResourceRow& row : kResourceRows) {
    const auto& most = in_force.each[row.resource];
    const uint64_t is = before[row.resource], wanted = after[row.resource];
    // Groups are not more or less than each other.
    if (!most || wanted <= *most || wanted == is || (wanted < is && row.resource != Resource::kGroup)) continue;
    const QuotaKey key{&row, true};
    const std::string_view because = Because(tenant, key);
    if (*most == 0)
      return QuotaRefusal{fmt::format("{} is not for {}{}; what they may have stands in {}", row.key, Whose(tenant),
                                      because, TableOf(tenant)),
                          FieldOf(row)};
    return QuotaRefusal{fmt::format("{} {} is more than {} may have, {} each{}: give it less, or raise {} in {}",
                                    row.key, ShowAmount(row, wanted), Whose(tenant), ShowAmount(row, *most), because,
                                    key.Text(), TableOf(tenant)),
                        FieldOf(row)};
  }
  return std::nullopt;
}

std::optional<QuotaRefusal> WhyNotTogether(const Tenant& tenant, const Quota& in_force, const Amounts& before,
                                           const Amounts& after) {
  for (const ResourceRow& row : kResourceRows) {
    const auto& most = in_force.together[row.resource];
    const uint64_t is = before[row.resource], wanted = after[row.resource];
    if (!most || wanted <= *most || wanted <= is) continue;
    const QuotaKey key{&row, false};
    const std::string who = tenant.name.empty() ? "this host" : NameOf(tenant);
    return QuotaRefusal{fmt::format("{} may have {} {} together{}, its VFs have {} and would have {}: give it less, "
                                    "destroy another of its VFs, or raise {} in {}",
                                    who, ShowAmount(row, *most), row.key, Because(tenant, key), ShowAmount(row, is),
                                    ShowAmount(row, wanted), key.Text(), TableOf(tenant)),
                        FieldOf(row)};
  }
  return std::nullopt;
}

}  // namespace vgpud::daemon
