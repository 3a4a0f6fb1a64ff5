// SPDX-License-Identifier: Apache-2.0
// Small fleets by hand.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tools/sim/fleet/play.h"

namespace vgpud::tools::fleet {

inline FleetJob Ask(Seconds arrival, Seconds duration, uint32_t gpus, uint32_t part, uint32_t tenant = 0) {
  FleetJob job;
  job.name = "job";
  job.tenant = tenant;
  job.arrival = arrival;
  job.duration = duration;
  job.gpus = gpus;
  job.part = job.work = part;
  return job;
}

inline FleetJob Training(Seconds arrival, Seconds duration) {
  FleetJob job = Ask(arrival, duration, 1, 1000);
  job.training = true;
  return job;
}

inline const FleetPolicy& Row(std::string_view engine, std::string_view name) {
  for (const FleetPolicy& row : kFleetPolicies)
    if (row.engine == engine && row.name == name) return row;
  ADD_FAILURE() << "no policy " << engine << " " << name;
  return kFleetPolicies[0];
}

inline FleetOutcome PlayRow(std::vector<FleetJob> jobs, Seconds end, const FleetRules& rules, std::string_view engine,
                            std::string_view name) {
  return Play({.jobs = std::move(jobs), .tenants = {"red", "blue"}, .end = end}, rules, Row(engine, name));
}

inline FleetRules Fleet(uint32_t gpus, uint32_t per_host, uint32_t slots) {
  FleetRules rules;
  rules.size = {gpus, per_host, slots};
  return rules;
}

}  // namespace vgpud::tools::fleet
