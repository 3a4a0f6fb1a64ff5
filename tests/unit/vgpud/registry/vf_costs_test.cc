// SPDX-License-Identifier: Apache-2.0
// What a VF costs, resource by resource.
#include "vgpud/registry/vf_costs.h"

#include <gtest/gtest.h>

#include "vgpud/host/vf_cgroup.h"

namespace vgpud::daemon {
namespace {

VfSpec Spec() {
  VfSpec spec;
  spec.vram_bytes = 64 << 20;
  spec.host_memory_bytes = 32 << 20;
  return spec;
}

TEST(VfCostsTest, VramOfTheSoftGpuIsMemoryOfTheHost) {
  EXPECT_EQ(uint64_t{96} << 20, CostsOf(Spec(), {.vram_is_ram = true, .threads = 1})[Resource::kRam]);
  EXPECT_EQ(uint64_t{32} << 20, CostsOf(Spec(), {.vram_is_ram = false, .threads = 1})[Resource::kRam]);
}

TEST(VfCostsTest, NothingIsForFree) {
  VfSpec spec = Spec();
  spec.view.priority = 1;
  spec.view.slice = std::chrono::milliseconds{2};
  spec.view.group = 0;
  spec.view.guarantee = 250'000;
  spec.view.burst = std::chrono::milliseconds{1};
  spec.view.wake_first = true;
  const Amounts costs = CostsOf(spec, {});
  for (const ResourceRow& row : kResourceRows) EXPECT_GT(costs[row.resource], 0U) << row.key;
  EXPECT_EQ(1U, costs[Resource::kGroup]) << "group 0 is a group";
  EXPECT_EQ(0U, CostsOf(Spec(), {})[Resource::kGroup]);
  EXPECT_EQ(2000U, costs[Resource::kSlice]);
  EXPECT_EQ(VfCgroup::LimitsFor(0, 0, 4).pids, CostsOf(spec, {.vram_is_ram = true, .threads = 4})[Resource::kThreads]);
  spec.transient = true;
  EXPECT_EQ(0U, CostsOf(spec, {})[Resource::kDisk]) << "it is not written down";
  spec.domain = {"guest", "11111111-2222-3333-4444-555555555555", true};
  EXPECT_GT(CostsOf(spec, {})[Resource::kDisk], 0U) << "it is, until its domain ends";
}

}  // namespace
}  // namespace vgpud::daemon
