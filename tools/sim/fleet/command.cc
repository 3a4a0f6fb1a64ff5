// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "tools/sim/fleet/report.h"
#include "tools/sim/fleet/trace.h"

namespace vgpud::tools::fleet {
namespace {

enum Exit : int { kOk = 0, kFailed = 1, kUsage = 2 };

int Complain(int code, const std::string& what) {
  std::fprintf(stderr, "vgpu-sim: %s\n", what.c_str());
  return code;
}

void SayRefused(const FleetOutcome& o) {
  for (const std::string& why : o.why)
    std::fprintf(stderr, "%s %s: refused: %s\n", o.engine.c_str(), o.policy.c_str(), why.c_str());
  if (o.refused > o.why.size())
    std::fprintf(stderr, "%s %s: refused: %llu more\n", o.engine.c_str(), o.policy.c_str(),
                 static_cast<unsigned long long>(o.refused - o.why.size()));
}

}  // namespace

FleetCommand::FleetCommand(CLI::App& app)
    : command_(app.add_subcommand("fleet", "Places jobs on many GPUs as Slurm and Kubernetes would")) {
  CLI::App& c = *command_;
  c.footer("Example: vgpu-sim fleet --jobs 100000 --gpus 1000");
  auto* trace =
      c.add_option("--trace", trace_, "Jobs of a trace: the list of pods of Alibaba's cluster-trace-gpu-v2023");
  auto* jobs = c.add_option("--jobs", mix_.jobs, "So many made-up jobs")->check(CLI::Range(1, 1'000'000));
  trace->excludes(jobs);
  const auto made_up = [&](CLI::Option* option) { option->needs(jobs)->capture_default_str(); };
  made_up(c.add_option("--seed", mix_.seed, "Of the made-up jobs"));
  made_up(c.add_option("--days", mix_.days, "Over which they come")->check(CLI::Range(1, 365)));
  made_up(c.add_option("--tenants", mix_.tenants, "Who send them")->check(CLI::Range(1, 1000)));
  made_up(c.add_option("--developers", mix_.developers, "Developers' sessions, of 100 jobs")
              ->check(CLI::Range(0.0, 100.0)));
  made_up(c.add_option("--services", mix_.services, "Services, of 100 jobs")->check(CLI::Range(0.0, 100.0)));
  const auto number = [&](const char* name, uint32_t& value, const char* about, uint32_t most) {
    c.add_option(name, value, about)->check(CLI::Range(1u, most))->capture_default_str();
  };
  number("--gpus", rules_.size.gpus, "GPUs of the fleet", 100'000);
  number("--gpus-per-host", rules_.size.per_host, "GPUs of a host", 64);
  number("--vfs-per-gpu", rules_.size.slots, "VFs of a GPU: parts are rounded up to these", 64);
  c.add_option("--engine", engine_, "Whose rules")->check(CLI::IsMember({"slurm", "kubernetes", "all"}));
  c.add_option("--policy", policy_, "Which")
      ->check(CLI::IsMember({"whole", "pack", "spread", "quota", "night", "all"}));
  c.add_option("--quota", quota_percent_, "Policy quota: percent of all VFs that one tenant may hold")
      ->check(CLI::Range(0.001, 100.0))
      ->capture_default_str();
  c.add_option("--night", night_, "Policy night: hours in which trainings start, FROM-TO")->capture_default_str();
  c.add_option("--from", rules_.from, "Figures are of the time after so many seconds")
      ->check(CLI::Range(int64_t{0}, 3650 * kDay))
      ->capture_default_str();
  c.add_flag("--json", json_, "For programs");
}

std::string FleetCommand::Settle() {
  if (trace_.empty() && mix_.jobs == 0) return "fleet: needs jobs: --trace FILE or --jobs N";
  if (mix_.developers + mix_.services > 100) return "--developers and --services: 100 together at most";
  rules_.quota = quota_percent_ / 100;
  int from = 0, to = 0, end = 0;
  const bool read = std::sscanf(night_.c_str(), "%2d-%2d%n", &from, &to, &end) == 2;
  if (!read || static_cast<size_t>(end) != night_.size() || from < 0 || from > 23 || to < 0 || to > 23 || from == to)
    return fmt::format("--night {}: must be two different hours from 0 to 23, like 20-8", night_);
  rules_.night_from = from * kHour;
  rules_.night_to = to * kHour;
  return {};
}

Result<JobList> FleetCommand::Jobs() const { return trace_.empty() ? MakeJobs(mix_) : ReadTrace(trace_); }

int FleetCommand::Run() {
  if (const std::string wrong = Settle(); !wrong.empty()) return Complain(kUsage, wrong);
  const auto jobs = Jobs();
  if (!jobs) return Complain(kUsage, "the trace is refused\n" + jobs.error().context);
  if (rules_.from >= jobs->end)
    return Complain(kUsage, fmt::format("--from {}: the jobs end at {}", rules_.from, jobs->end));
  std::vector<FleetOutcome> outcomes;
  for (const FleetPolicy& policy : kFleetPolicies) {
    if ((engine_ != "all" && engine_ != policy.engine) || (policy_ != "all" && policy_ != policy.name)) continue;
    const auto began = std::chrono::steady_clock::now();
    outcomes.push_back(Play(*jobs, rules_, policy));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    SayRefused(outcomes.back());
    if (isatty(STDERR_FILENO))
      std::fprintf(stderr, "%s %s: %.2f s\n", outcomes.back().engine.c_str(), outcomes.back().policy.c_str(),
                   took.count());
  }
  if (jobs->without_gpu + jobs->never_started > 0)
    std::fprintf(stderr, "%s: left out: %llu lines without a GPU, %llu that never started\n", trace_.c_str(),
                 static_cast<unsigned long long>(jobs->without_gpu),
                 static_cast<unsigned long long>(jobs->never_started));
  const std::string text = json_ ? FleetJson(outcomes, *jobs, rules_.size) : FleetTable(outcomes);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? kOk : kFailed;
}

}  // namespace vgpud::tools::fleet
