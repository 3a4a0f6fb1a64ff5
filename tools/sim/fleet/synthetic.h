// SPDX-License-Identifier: Apache-2.0
// Jobs made up from a documented distribution (docs/fleet-simulation.md, "Made-up jobs").
#pragma once

#include "tools/sim/fleet/job.h"

namespace vgpud::tools::fleet {

struct Mix {
  uint32_t jobs = 0;
  uint64_t seed = 1;
  uint32_t days = 7;       // over which they come; at least 1
  uint32_t tenants = 10;   // at least 1; the k-th sends jobs in proportion to 1/k
  double developers = 60;  // of 100 jobs
  double services = 15;    // of 100 jobs; the rest are trainings
};

// The same jobs for the same mix, on every machine.
JobList MakeJobs(const Mix& mix);

}  // namespace vgpud::tools::fleet
