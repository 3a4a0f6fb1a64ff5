// SPDX-License-Identifier: Apache-2.0
// Which VF is whose: what vgpud says compared with the domains that libvirt runs. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/libvirt/domain.h"

namespace vgpud::tools {

// As vgpud says.
struct VfState {
  std::string name;
  std::string uuid;
  DomainId domain;  // whose it is; empty: nobody's
  bool ends_with_domain = false;
  bool is_connected = false;  // some QEMU has it
};

struct RunningDomain {
  DomainId id;
  std::set<std::string> vfs;  // by name
};

struct OwnershipStep {
  enum class Kind {
    kGive,     // vgpud should know that it is `domain`'s
    kTake,     // it is nobody's any more: `domain` has ended
    kDestroy,  // the same, of one that ends with its domain
  };
  Kind kind = Kind::kGive;
  std::string vf;
  std::string vf_uuid;
  DomainId domain;
  bool operator==(const OwnershipStep&) const = default;
};

// What vgpud has to be told. `vfs` have to be older than `running`: then a domain that is just being started, whose VF
// is there already, is among the running ones. A VF that some QEMU has is taken from nobody.
std::vector<OwnershipStep> PlanOwnership(const std::vector<VfState>& vfs, const std::vector<RunningDomain>& running);

}  // namespace vgpud::tools
