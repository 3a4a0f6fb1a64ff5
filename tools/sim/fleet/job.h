// SPDX-License-Identifier: Apache-2.0
// What is asked of a fleet: jobs, each on one host, and whose they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpud::tools::fleet {

using Seconds = int64_t;  // of virtual time; 0 is midnight
constexpr Seconds kHour = 3600;
constexpr Seconds kDay = 24 * kHour;
constexpr int64_t kWholeGpu = 1000;  // parts and work of a GPU are counted in thousandths

struct FleetJob {
  std::string name;
  uint32_t tenant = 0;    // place in JobList::tenants
  Seconds arrival = 0;    // when it is submitted
  Seconds duration = 1;   // from its start to its end, wherever it runs; at least 1
  uint32_t gpus = 1;      // of one host
  uint32_t part = 1000;   // of each of them, in thousandths; 1000 if there are several
  uint32_t work = 1000;   // what it really uses of each of them, in thousandths: at most `part`
  bool training = false;  // may wait for the night
};

struct JobList {
  std::vector<FleetJob> jobs;  // by arrival
  std::vector<std::string> tenants;
  Seconds end = 0;             // figures are of the time until then; jobs run to their end all the same
  uint64_t without_gpu = 0;    // lines of a trace that ask for no GPU
  uint64_t never_started = 0;  // lines of a trace whose job never ran
};

}  // namespace vgpud::tools::fleet
