// SPDX-License-Identifier: Apache-2.0
// Tenants: whose VFs are whose, and how much the VFs of one may have together, on all GPUs. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::daemon {

// Nothing: no quota.
struct Tenant {
  std::string name;
  std::optional<uint64_t> vfs;
  std::optional<uint64_t> vram_bytes;
  std::optional<uint64_t> weight;
  std::optional<uint64_t> guarantee;  // millionths of a GPU (kWhole); of several GPUs more than one
  std::optional<uint64_t> priority;   // the most of each VF, and their place among new VFs that wait for room
};
using Tenants = std::vector<Tenant>;

// "team-a.vram=8GiB": one key of one tenant, which `tenants` gets if it has it not.
[[nodiscard]] Result<void> SetInTenant(Tenants* tenants, std::string_view setting);
std::vector<std::string> TenantKeys();
// The error names what there is that is near.
[[nodiscard]] Result<const Tenant*> FindTenant(const Tenants& tenants, std::string_view name);

// What VFs have together.
struct TenantUse {
  uint64_t vfs = 0;
  uint64_t vram_bytes = 0;
  uint64_t weight = 0;
  uint64_t guarantee = 0;
};
struct QuotaRefusal {
  std::string why;    // with the figures
  std::string field;  // of the request
};
// May its VFs, which have `before`, have `after`? What was too much before, as the quota has become less since, is no
// obstacle unless it becomes more.
std::optional<QuotaRefusal> WhyNotWithin(const Tenant& tenant, const TenantUse& before, const TenantUse& after);

}  // namespace vgpud::daemon
