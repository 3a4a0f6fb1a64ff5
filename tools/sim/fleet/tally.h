// SPDX-License-Identifier: Apache-2.0
// What a fleet is judged by.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/sim/fleet/hosts.h"
#include "tools/sim/fleet/job.h"

namespace vgpud::tools::fleet {

// Figures of one policy. Those in parts are from 0 to 1. "The time looked at" ends with JobList::end.
struct FleetOutcome {
  std::string engine;
  std::string policy;
  uint64_t jobs = 0;             // that ran; all of them count for waiting, also those that started late
  uint64_t refused = 0;          // that can never run
  std::vector<std::string> why;  // of the first few of them, in words
  double held = 0;               // VF slots that a job held
  double used = 0;               // of what the GPUs could do
  double hours_per_day = 0;      // with a job on it, per GPU
  double fragmentation = 0;      // of the free slots, those on a GPU of which a job held others
  std::optional<double> jain;    // of the tenants: GPU time received over what no waiting would have given
  double jobs_per_day = 0;       // that ended in the time looked at
  Seconds wait_mean = 0, wait_p50 = 0, wait_p95 = 0, wait_p99 = 0, wait_max = 0;
  Seconds last_end = 0;  // when the last job was done
};

class Tally {
 public:
  // Figures of the time from `from` to `jobs.end`. `jobs` must outlive this.
  Tally(const JobList& jobs, const FleetSize& size, Seconds from);

  // Nothing changed from the last call until `now`; `hosts` is as it was meanwhile.
  void Advance(Seconds now, const Hosts& hosts);
  void Refused(const FleetJob& job, const std::string& why);
  void Started(const FleetJob& job, Seconds now);
  void Ended(const FleetJob& job, Seconds now);
  // Everything ended.
  FleetOutcome Finish();

 private:
  Seconds Within(Seconds from, Seconds to) const {
    return std::max<Seconds>(0, std::min(to, jobs_.end) - std::max(from, from_));
  }

  const JobList& jobs_;
  const FleetSize size_;
  const Seconds from_;
  Seconds now_ = 0;
  int64_t work_ = 0;  // of the jobs that run, in thousandths of a GPU
  int64_t held_ = 0, free_ = 0, stranded_ = 0, used_gpus_ = 0, done_work_ = 0;  // sums over time
  uint64_t ended_ = 0;
  std::vector<Seconds> waits_;
  std::vector<double> asked_, received_;  // by tenant, thousandths of a GPU times seconds
  FleetOutcome outcome_;
};

}  // namespace vgpud::tools::fleet
