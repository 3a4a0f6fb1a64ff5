// SPDX-License-Identifier: Apache-2.0
// vgpu-sim: what would this GPU do under this load? Plays a workload file through vgpud's own scheduler in virtual
// time. `vgpu-sim fleet`: what would many GPUs do with these jobs?
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "sched/chrome_trace.h"
#include "sched/registry.h"
#include "tools/sim/fleet/command.h"
#include "tools/sim/report.h"
#include "tools/sim/toml_table.h"
#include "tools/sim/workload_file.h"

namespace vgpud::tools {
namespace {

enum Exit : int { kOk = 0, kFailed = 1, kUsage = 2 };

struct Args {
  std::string file;
  std::string policy;
  std::string trace;
  std::string trace_last;
  std::string duration;
  std::string output = "table";
  std::optional<uint64_t> seed;
};

int Complain(int code, const std::string& what) {
  std::fprintf(stderr, "vgpu-sim: %s\n", what.c_str());
  return code;
}

Result<std::vector<std::string>> ChosenPolicies(const Args& args, const Workload& workload) {
  if (args.policy.empty()) return std::vector<std::string>{workload.gpu.policy};
  std::vector<std::string> names;
  for (const PolicyRow& row : Policies())
    if (args.policy == "all") names.emplace_back(row.name);
  if (!names.empty()) return names;
  TRY(FindPolicy(args.policy));
  return std::vector<std::string>{args.policy};
}

// The slices of one simulation, from `since` on, as a Chrome trace in a file.
class TraceFile {
 public:
  TraceFile(const std::string& path, const Workload& workload, TimePoint since)
      : file_(path, std::ios::binary | std::ios::trunc),
        since_(since),
        chrome_(Sink(), workload.gpu.name, Rows(workload), since) {}
  void Add(const SliceRecord& turn) {
    if (turn.end > since_) chrome_.Add(turn);
  }
  // Was everything written?
  bool Finish() {
    chrome_.Finish();
    file_.close();
    return !file_.fail();
  }

 private:
  ChromeTrace::Sink Sink() {
    return [this](std::string_view text) { file_.write(text.data(), static_cast<std::streamsize>(text.size())); };
  }
  static std::vector<ChromeTrace::Row> Rows(const Workload& workload) {
    std::vector<ChromeTrace::Row> rows;
    for (const VfSpec& vf : workload.vfs) rows.push_back({vf.view.vf, vf.name});
    return rows;
  }

  std::ofstream file_;
  const TimePoint since_;
  ChromeTrace chrome_;
};

int Run(const Args& args) {
  auto workload = LoadWorkload(args.file);
  if (!workload) return Complain(kUsage, workload.error().context);
  if (!args.duration.empty()) {
    const auto duration = ParseLength(args.duration);
    if (!duration || *duration < std::chrono::milliseconds{1})
      return Complain(kUsage, "--duration " + args.duration + ": must be a length of time like 10s or 8h, 1ms or more");
    workload->duration = *duration;
  }
  Ns traced = workload->duration;
  if (!args.trace_last.empty()) {
    const auto last = ParseLength(args.trace_last);
    if (!last || *last == Ns{0})
      return Complain(kUsage, "--trace-last " + args.trace_last + ": must be a length of time like 5s");
    traced = std::min(traced, *last);
  }
  const auto policies = ChosenPolicies(args, *workload);
  if (!policies) return Complain(kUsage, policies.error().context);
  if (policies->size() > 1 && !args.trace.empty())
    return Complain(kUsage, "--trace " + args.trace + ": is for one policy: name it with --policy");

  const uint64_t seed = args.seed.value_or(workload->seed);
  std::vector<Outcome> outcomes;
  for (const std::string& policy : *policies) {
    std::unique_ptr<TraceFile> trace;
    std::function<void(const SliceRecord&)> on_turn;
    if (!args.trace.empty()) {
      trace = std::make_unique<TraceFile>(args.trace, *workload, kSimulationStart + workload->duration - traced);
      on_turn = [&trace](const SliceRecord& turn) { trace->Add(turn); };
    }
    const auto began = std::chrono::steady_clock::now();
    auto outcome = Simulate(*workload, policy, seed, on_turn);
    if (!outcome) return Complain(kUsage, args.file + ": " + outcome.error().context);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (trace && !trace->Finish()) return Complain(kFailed, args.trace + ": the trace could not be written");
    if (isatty(STDERR_FILENO))
      std::fprintf(stderr, "policy %s: %llu turns in %.2f s\n", policy.c_str(),
                   static_cast<unsigned long long>(outcome->turns), took.count());
    outcomes.push_back(*std::move(outcome));
  }
  const std::string text = args.output == "json" ? OutcomeJson(outcomes, seed) : OutcomeTables(outcomes);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? kOk : kFailed;
}

}  // namespace
}  // namespace vgpud::tools

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::tools;
  Args args;
  CLI::App app{
      "Plays a workload file (docs/simulator.md) through vgpud's scheduler in virtual time, or with `fleet` jobs on "
      "many\n"
      "GPUs (docs/fleet-simulation.md).\n"
      "Exit codes: 0 ok, 1 failed, 2 bad usage or a wrong workload file."};
  app.footer("Example: vgpu-sim tools/sim/scenarios/eight-developers.toml --policy all");
  app.set_version_flag("--version", "vgpu-sim " VGPUD_VERSION);
  app.add_option("file", args.file, "The workload, TOML");
  app.add_option("--policy", args.policy, "Policy instead of the file's own; all = each in turn, compared");
  app.add_option("--seed", args.seed, "Seed of all random lengths instead of the file's own");
  app.add_option("--duration", args.duration, "Length instead of the file's own, like 10s or 8h");
  app.add_option("--trace", args.trace, "Write all slices as a Chrome trace, which Perfetto opens");
  app.add_option("--trace-last", args.trace_last, "Trace only the last part of the run, like 5s");
  app.add_option("-o,--output", args.output, "table for people, json for programs")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  fleet::FleetCommand fleet(app);
  try {
    app.parse(argc, argv);
    if (!fleet.parsed() && args.file.empty()) throw CLI::RequiredError("file");
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kUsage;
  }
  if (fleet.parsed()) return fleet.Run();
  return Run(args);
}
