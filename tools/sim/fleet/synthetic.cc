// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/sim/distribution.h"
#include "tools/sim/random.h"

namespace vgpud::tools::fleet {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

struct Kind {
  uint32_t part, work;  // of a GPU, in thousandths
  Seconds from, to;     // time of day at which they come
  Distribution duration;
};

struct Kinds {
  Kind developer{125, 100, 9 * kHour, 18 * kHour, Distribution::LogNormal(hours{2}, hours{8})};
  Kind service{250, 150, 0, kDay, Distribution::LogNormal(hours{4}, hours{24})};
  Kind training{1000, 900, 0, kDay, Distribution::LogNormal(minutes{30}, hours{24})};
};

uint32_t GpusOfTraining(Random& random) {
  const double u = random.Unit();
  return u < 0.60 ? 1 : u < 0.80 ? 2 : u < 0.95 ? 4 : 8;
}

// Running sums of 1, 1/2, 1/3, ...
std::vector<double> Harmonic(uint32_t count) {
  std::vector<double> sums;
  double sum = 0;
  for (uint32_t k = 1; k <= count; ++k) sums.push_back(sum += 1.0 / k);
  return sums;
}

FleetJob MakeJob(const Kinds& kinds, const Mix& mix, const std::vector<double>& tenants, Random& random) {
  FleetJob job;
  const double u = random.Unit() * 100;
  job.training = u >= mix.developers + mix.services;
  const Kind& kind = job.training ? kinds.training : u < mix.developers ? kinds.developer : kinds.service;
  job.gpus = job.training ? GpusOfTraining(random) : 1;
  job.part = kind.part;
  job.work = kind.work;
  const auto tenant = std::upper_bound(tenants.begin(), tenants.end(), random.Unit() * tenants.back());
  job.tenant = static_cast<uint32_t>(std::min<ptrdiff_t>(tenant - tenants.begin(), mix.tenants - 1));
  const auto day = static_cast<Seconds>(random.Unit() * mix.days);
  job.arrival = day * kDay + kind.from + static_cast<Seconds>(random.Unit() * static_cast<double>(kind.to - kind.from));
  job.duration = std::max<Seconds>(std::chrono::floor<std::chrono::seconds>(kind.duration.Sample(random)).count(), 1);
  return job;
}

}  // namespace

JobList MakeJobs(const Mix& mix) {
  JobList list;
  list.end = mix.days * kDay;
  for (uint32_t k = 1; k <= mix.tenants; ++k) list.tenants.push_back(fmt::format("tenant-{}", k));
  const Kinds kinds;
  const std::vector<double> tenants = Harmonic(mix.tenants);
  Random random(mix.seed, 0);
  for (uint32_t i = 0; i < mix.jobs; ++i) list.jobs.push_back(MakeJob(kinds, mix, tenants, random));
  std::stable_sort(list.jobs.begin(), list.jobs.end(),
                   [](const FleetJob& a, const FleetJob& b) { return a.arrival < b.arrival; });
  for (size_t i = 0; i < list.jobs.size(); ++i) list.jobs[i].name = fmt::format("job-{}", i + 1);
  return list;
}

}  // namespace vgpud::tools::fleet
