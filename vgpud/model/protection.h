// SPDX-License-Identifier: Apache-2.0
// One row of the list of what keeps guests from the host and from each other here: is it in force, and if not, why.
#pragma once

#include <string>
#include <vector>

namespace vgpud::daemon {

struct Protection {
  std::string name;  // as in docs/isolation.md, stable: also a label of a metric
  bool in_force = false;
  std::string why_not;  // and what to do about it; empty when it is in force
};
using Protections = std::vector<Protection>;

}  // namespace vgpud::daemon
