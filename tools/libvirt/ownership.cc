// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/ownership.h"

#include <algorithm>

namespace vgpud::tools {

std::vector<OwnershipStep> PlanOwnership(const std::vector<VfState>& vfs, const std::vector<RunningDomain>& running) {
  using Kind = OwnershipStep::Kind;
  std::vector<OwnershipStep> steps;
  for (const VfState& vf : vfs) {
    const auto user = std::find_if(running.begin(), running.end(),
                                   [&](const RunningDomain& each) { return each.vfs.contains(vf.name); });
    if (user != running.end()) {
      if (user->id != vf.domain) steps.push_back({Kind::kGive, vf.name, vf.uuid, user->id});
      continue;
    }
    // One that runs may be getting the VF right now.
    const bool runs = std::any_of(running.begin(), running.end(),
                                  [&](const RunningDomain& each) { return each.id.uuid == vf.domain.uuid; });
    if (vf.domain.uuid.empty() || runs || vf.is_connected) continue;
    steps.push_back({vf.ends_with_domain ? Kind::kDestroy : Kind::kTake, vf.name, vf.uuid, vf.domain});
  }
  return steps;
}

}  // namespace vgpud::tools
