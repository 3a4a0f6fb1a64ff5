// SPDX-License-Identifier: Apache-2.0
// Plays jobs on a fleet under one policy, in virtual time, from event to event.
#pragma once

#include "tools/sim/fleet/hosts.h"
#include "tools/sim/fleet/job.h"
#include "tools/sim/fleet/policy.h"
#include "tools/sim/fleet/tally.h"

namespace vgpud::tools::fleet {

struct FleetRules {
  FleetSize size;
  double quota = 0.2;                                     // of all slots, for one tenant
  Seconds night_from = 20 * kHour, night_to = 8 * kHour;  // times of day that differ
  Seconds from = 0;                                       // figures are of the time after it
};

// The same figures for the same jobs, rules and policy. Jobs that can never run are refused, the others all run.
FleetOutcome Play(const JobList& jobs, const FleetRules& rules, const FleetPolicy& policy);

}  // namespace vgpud::tools::fleet
