// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/vgpuctl/table.h"

namespace vgpud::tools::fleet {
namespace {

using Json = nlohmann::ordered_json;

std::string Percent(double part) { return fmt::format("{:.1f}%", 100 * part); }
std::string Length(Seconds s) {
  if (s < 60) return fmt::format("{}s", s);
  if (s < kHour) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 10 * kDay) return fmt::format("{}h{:02}m", s / kHour, s % kHour / 60);
  return fmt::format("{}d", s / kDay);
}

}  // namespace

std::string FleetTable(std::span<const FleetOutcome> outcomes) {
  Table table{{"ENGINE", "POLICY", "USED", "HELD", "HOURS/DAY", "JOBS/DAY", "WAIT-P50", "WAIT-P95", "WAIT-P99",
               "FRAGMENTED", "JAIN", "REFUSED"}};
  for (const FleetOutcome& o : outcomes)
    table.Row({o.engine, o.policy, Percent(o.used), Percent(o.held), fmt::format("{:.1f}", o.hours_per_day),
               fmt::format("{:.0f}", o.jobs_per_day), Length(o.wait_p50), Length(o.wait_p95), Length(o.wait_p99),
               Percent(o.fragmentation), o.jain ? fmt::format("{:.3f}", *o.jain) : "-", fmt::format("{}", o.refused)});
  return table.Text();
}

std::string FleetJson(std::span<const FleetOutcome> outcomes, const JobList& jobs, const FleetSize& size) {
  Json rows = Json::array();
  for (const FleetOutcome& o : outcomes)
    rows.push_back({{"engine", o.engine},
                    {"policy", o.policy},
                    {"jobs", o.jobs},
                    {"refused", o.refused},
                    {"refused_why", o.why},
                    {"used", o.used},
                    {"held", o.held},
                    {"hours_per_day", o.hours_per_day},
                    {"jobs_per_day", o.jobs_per_day},
                    {"wait_mean_s", o.wait_mean},
                    {"wait_p50_s", o.wait_p50},
                    {"wait_p95_s", o.wait_p95},
                    {"wait_p99_s", o.wait_p99},
                    {"wait_max_s", o.wait_max},
                    {"fragmentation", o.fragmentation},
                    {"jain", o.jain ? Json(*o.jain) : Json(nullptr)},
                    {"last_end_s", o.last_end}});
  return Json{{"gpus", size.gpus},
              {"gpus_per_host", size.per_host},
              {"vfs_per_gpu", size.slots},
              {"jobs", jobs.jobs.size()},
              {"tenants", jobs.tenants},
              {"lines_without_gpu", jobs.without_gpu},
              {"lines_never_started", jobs.never_started},
              {"end_s", jobs.end},
              {"policies", std::move(rows)}}
             .dump(2) +
         "\n";
}

}  // namespace vgpud::tools::fleet
