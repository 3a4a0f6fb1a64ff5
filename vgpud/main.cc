// SPDX-License-Identifier: Apache-2.0
// vgpud: the daemon. Flags become a Config, the Config becomes a Daemon; no logic here.
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/compute_capability.h"
#include "base/foreign_fd.h"
#include "base/log.h"
#include "sched/knobs.h"
#include "vgpud/config.h"
#include "vgpud/daemon.h"

namespace vgpud::daemon {
namespace {

int Complain(const Error& error, int status = 1) {
  fmt::print(stderr, "vgpud: {}\n", error.context);
  return status;
}

std::string AboutPolicies() {
  std::string about = "Who gets the GPU, and for how long.";
  for (const PolicyRow& row : Policies()) about += fmt::format(" {}: {}.", row.name, row.about);
  return about;
}

// Groups have no weight of their own at start: vgpuctl set-gpu.
void AddKnobs(CLI::App& app, std::map<Knob, uint64_t>& knobs) {
  for (const KnobRow& row : Knobs()) {
    if (row.per_vf || row.knob == Knob::kGroupWeight) continue;
    std::string option(row.name);
    std::replace(option.begin(), option.end(), '_', '-');
    uint64_t& value = knobs[row.knob] = KnobOf(DefaultOptions(), row.knob);
    app.add_option("--" + option, value, fmt::format("{} ({})", row.about, AllowedRange(row)))->capture_default_str();
  }
}

// What stands on the command line, as it stands there.
struct Flags {
  Config config;
  std::string idle{NameOf(WhenIdle::kYield)};
  std::map<Knob, uint64_t> knobs;
  uint64_t finish_timeout_us = 10'000'000;
  uint64_t preempt_timeout_us = 10'000;
  uint64_t history_interval_ms = 5'000;
  std::string spin = "auto";
  std::vector<std::string> event_budgets;
  bool foreground = true;
  bool exit_with_parent = false;
};

// Where it listens and writes.
void AddPlaces(CLI::App& app, Flags& flags) {
  app.add_option("--runtime-dir", flags.config.runtime_dir,
                 "Directory of the sockets (default: $VGPUD_RUNTIME_DIR, else /run/vgpud for root, else "
                 "$XDG_RUNTIME_DIR/vgpud)");
  app.add_option("--state-dir", flags.config.state_dir,
                 "Directory of the usage history (default: $VGPUD_STATE_DIR, else /var/lib/vgpud for the daemon of "
                 "/run/vgpud, else state in the runtime directory)");
  app.add_option("--history-interval-ms", flags.history_interval_ms, "How often the usage history is written")
      ->check(CLI::Range(100, 60'000))
      ->capture_default_str();
  app.add_option("--trace-turns", flags.config.scheduler.trace_slices,
                 "How many turns are remembered for vgpuctl trace")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--metrics-listen", flags.config.metrics_listen,
                 "ADDRESS:PORT where anybody may read the metrics (GET /metrics), for Prometheus; default: nowhere");
}

void AddGpu(CLI::App& app, Flags& flags) {
  app.add_option("--gpu", flags.config.gpu, "The GPU to share: soft, the built-in one")
      ->check(CLI::IsMember({"soft"}))
      ->capture_default_str();
  app.add_option("--soft-gpu-threads", flags.config.soft_gpu_threads,
                 "How many threads run a kernel together on the soft GPU; 0 = 1 on a host with 2 CPUs or fewer, else "
                 "half of them, at most 16")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  app.add_option(
         "--soft-gpu-capability", flags.config.soft_gpu_capability,
         "Compute capability of the soft GPU, which programs see and are compiled for: " + ListComputeCapabilities())
      ->check([](const std::string& name) {
        const auto known = FindComputeCapability(name);
        return known ? std::string() : known.error().context;
      })
      ->capture_default_str();
  app.add_option("--outside-turns-percent", flags.config.outside_turns_percent,
                 "What all VFs together may use of the host's processors outside of their turns; one that uses more "
                 "than its part gives way to the others")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--first-vf-user", flags.config.first_vf_user,
                 "Run by root: the first of 4096 user and group numbers that nobody else has, one for each VF")
      ->check(CLI::Range(1u, 4'294'900'000u))
      ->capture_default_str();
}

void AddProcess(CLI::App& app, Flags& flags) {
  app.add_flag("--foreground", flags.foreground, "Stay in the foreground (the default; it never forks away)");
  app.add_option("--ready-fd", flags.config.ready_fd, "Write one byte to this file descriptor when serving")
      ->check(CLI::Range(3, 1 << 20));
  app.add_flag("--exit-with-parent", flags.exit_with_parent, "Stop when the process that started this one ends");
}

void AddPolicy(CLI::App& app, Flags& flags) {
  app.add_option("--policy", flags.config.settings.policy, AboutPolicies())->capture_default_str();
  app.add_option("--idle", flags.idle,
                 "What happens to the turn of a VF without work: it gives it away, or it keeps it")
      ->check(CLI::IsMember({"yield", "hold"}))
      ->capture_default_str();
  AddKnobs(app, flags.knobs);
}

// How exactly slices begin and end.
void AddTiming(CLI::App& app, Flags& flags) {
  app.add_option("--finish-timeout-us", flags.finish_timeout_us,
                 "Policy relaxed: how long a kernel may take after the end of a slice before it is forced")
      ->check(CLI::Range(1'000, 60'000'000))
      ->capture_default_str();
  app.add_option("--preempt-timeout-us", flags.preempt_timeout_us,
                 "How long a VF may take to leave the GPU before it is forced")
      ->check(CLI::Range(100, 10'000'000))
      ->capture_default_str();
  app.add_option(
         "--spin-us", flags.spin,
         "How long before the end of a slice the scheduler thread stops sleeping, in microseconds; auto: as long "
         "as this host wakes it late, at most --max-spin-percent of the slice")
      ->check(CLI::IsMember({"auto"}) | CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--max-spin-percent", flags.config.scheduler.waiter.max_spin_percent,
                 "--spin-us auto: the part of one CPU that this may cost")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_flag(
      "--keep-cpu-awake", flags.config.scheduler.waiter.keep_cpu_awake,
      "Never let the scheduler thread's CPU sleep while a VF has work: slices end on time, and that CPU's idle "
      "time is used up");
  app.add_option("--fifo-priority", flags.config.scheduler.waiter.fifo_priority,
                 "SCHED_FIFO priority of the scheduler thread, 0 = ordinary")
      ->check(CLI::Range(0, 98))
      ->capture_default_str();
}

void AddBudgets(CLI::App& app, Flags& flags) {
  app.add_option(
      "--event-budget", flags.event_budgets,
      "KIND=NUMBER: how many events of a kind a guest may cause per second before it is slowed down; 0 = no "
      "limit. Kinds: doorbells, commands, opens, resets, bad_messages, messages, faults, interrupts, module_kib "
      "(docs/isolation.md)");
}

// What the flags mean together; an error names the flag's value.
Result<Config> ConfigOf(const Flags& flags) {
  using std::chrono::microseconds;
  Config config = flags.config;
  config.settings.options.idle = flags.idle == "hold" ? WhenIdle::kHold : WhenIdle::kYield;
  for (const auto& [knob, value] : flags.knobs) {
    if (value == KnobOf(config.settings.options, knob)) continue;
    TRY(CheckKnob(knob, value));
    SetKnob(config.settings.options, knob, value);
  }
  config.scheduler.switcher.finish_timeout = microseconds{flags.finish_timeout_us};
  config.scheduler.switcher.preempt_timeout = microseconds{flags.preempt_timeout_us};
  config.history_interval = std::chrono::milliseconds{flags.history_interval_ms};
  if (flags.spin != "auto") config.scheduler.waiter.spin = microseconds{std::stoul(flags.spin)};
  for (const std::string& budget : flags.event_budgets) TRY(ParseEventBudget(budget, config.event_budgets));
  TRY(CheckChange({}, {config.settings, {}}, Ns{0}));
  return config;
}

}  // namespace
}  // namespace vgpud::daemon

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::daemon;
  const pid_t parent = ::getppid();
  Flags flags;
  CLI::App app{"Shares one GPU among virtual functions, in time slices. Control it with vgpuctl."};
  app.set_version_flag("--version", "vgpud " VGPUD_VERSION);
  for (const auto add : {AddPlaces, AddGpu, AddProcess, AddPolicy, AddTiming, AddBudgets}) add(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  auto config = ConfigOf(flags);
  if (!config) return Complain(config.error(), 2);
  if (flags.exit_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  SetLogName("vgpud");
  if (const auto resolved = ResolveConfig(*config); !resolved) return Complain(resolved.error());
  StartClosers();
  auto daemon = Daemon::Start(*config);
  if (!daemon) return Complain(daemon.error());
  (*daemon)->Run();
  return 0;
}
