// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sched/fairness.h"

namespace vgpud::tools::fleet {
namespace {

constexpr size_t kMostWords = 5;

double Part(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// The smallest value that `percent` of `sorted` do not exceed; 0 for none.
Seconds Percentile(const std::vector<Seconds>& sorted, size_t percent) {
  if (sorted.empty()) return 0;
  return sorted[std::max<size_t>((sorted.size() * percent + 99) / 100, 1) - 1];
}

}  // namespace

Tally::Tally(const JobList& jobs, const FleetSize& size, Seconds from)
    : jobs_(jobs), size_(size), from_(from), asked_(jobs.tenants.size()), received_(jobs.tenants.size()) {}

void Tally::Advance(Seconds now, const Hosts& hosts) {
  const Seconds time = Within(now_, now);
  now_ = now;
  if (time == 0) return;
  held_ += time * (static_cast<int64_t>(size_.gpus) * size_.slots - hosts.free());
  free_ += time * hosts.free();
  stranded_ += time * hosts.stranded();
  used_gpus_ += time * hosts.used_gpus();
  done_work_ += time * work_;
}

void Tally::Refused(const FleetJob& job, const std::string& why) {
  ++outcome_.refused;
  if (outcome_.why.size() < kMostWords)
    outcome_.why.push_back(fmt::format("{} of {}: {}", job.name, jobs_.tenants[job.tenant], why));
}

void Tally::Started(const FleetJob& job, Seconds now) {
  const double parts = static_cast<double>(job.gpus) * job.part;
  ++outcome_.jobs;
  waits_.push_back(now - job.arrival);
  work_ += int64_t{job.gpus} * job.work;
  asked_[job.tenant] += parts * static_cast<double>(Within(job.arrival, job.arrival + job.duration));
  received_[job.tenant] += parts * static_cast<double>(Within(now, now + job.duration));
}

void Tally::Ended(const FleetJob& job, Seconds now) {
  work_ -= int64_t{job.gpus} * job.work;
  ended_ += now > from_ && now <= jobs_.end;
  outcome_.last_end = now;
}

FleetOutcome Tally::Finish() {
  const Seconds time = std::max<Seconds>(jobs_.end - from_, 1);
  const int64_t gpu_time = static_cast<int64_t>(size_.gpus) * time;
  FleetOutcome& o = outcome_;
  o.held = Part(held_, gpu_time * size_.slots);
  o.used = Part(done_work_, gpu_time * kWholeGpu);
  o.hours_per_day = 24 * Part(used_gpus_, gpu_time);
  o.fragmentation = Part(stranded_, free_);
  o.jobs_per_day = static_cast<double>(ended_) * kDay / static_cast<double>(time);
  std::vector<double> parts;
  for (size_t i = 0; i < asked_.size(); ++i)
    if (asked_[i] > 0) parts.push_back(received_[i] / asked_[i]);
  o.jain = JainIndex(parts);
  std::sort(waits_.begin(), waits_.end());
  const double sum = std::accumulate(waits_.begin(), waits_.end(), 0.0);  // may be more than 64 bits hold
  o.wait_mean = waits_.empty() ? 0 : static_cast<Seconds>(sum / static_cast<double>(waits_.size()));
  o.wait_p50 = Percentile(waits_, 50);
  o.wait_p95 = Percentile(waits_, 95);
  o.wait_p99 = Percentile(waits_, 99);
  o.wait_max = waits_.empty() ? 0 : waits_.back();
  return std::move(o);
}

}  // namespace vgpud::tools::fleet
