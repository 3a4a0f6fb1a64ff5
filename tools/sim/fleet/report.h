// SPDX-License-Identifier: Apache-2.0
// What was found, for people and for programs.
#pragma once

#include <span>
#include <string>

#include "tools/sim/fleet/tally.h"

namespace vgpud::tools::fleet {

std::string FleetTable(std::span<const FleetOutcome> outcomes);
std::string FleetJson(std::span<const FleetOutcome> outcomes, const JobList& jobs, const FleetSize& size);

}  // namespace vgpud::tools::fleet
