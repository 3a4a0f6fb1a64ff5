// SPDX-License-Identifier: Apache-2.0
// The flags of vgpud, which configuration files name too (config_file.h), and what they mean together.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sched/registry.h"
#include "vgpud/config/config.h"

namespace vgpud::daemon {

// What stands on the command line, as it stands there.
struct Flags {
  Config config;
  std::string config_file;
  bool check_config = false;
  std::string idle{NameOf(WhenIdle::kYield)};
  std::map<Knob, uint64_t> knobs;
  uint64_t finish_timeout_us = 10'000'000;
  std::optional<uint64_t> preempt_timeout_us;  // none: as long as the GPU needs
  uint64_t history_interval_ms = 5'000;
  std::string spin = "auto";
  std::vector<std::string> event_budgets;
  std::vector<std::string> profiles;
  std::vector<std::string> gpus;
  std::vector<std::string> tenants;
  std::vector<std::string> site;
  std::vector<std::string> users;
  std::vector<std::string> calendar;
  std::string others_may{NameOf(May::kManage)};
  std::string placement{NameOf(kDefaultPlacement)};
  int numa_node = -1;
  std::string soft_gpu_vram;
  bool foreground = true;
  bool exit_with_parent = false;
  bool take_back_alone = false;
};

// Has one value for each kind of event: a table of its own in configuration files.
inline constexpr const char* kEventBudget = "--event-budget";

// One key of one profile: a table for each in configuration files.
inline constexpr const char* kProfile = "--profile";

// One key of one tenant, user or period: tables as those of profiles.
inline constexpr const char* kTenant = "--tenant";
inline constexpr const char* kUser = "--user";
// One limit of all VFs: a table of its own, as that of event budgets.
inline constexpr const char* kSite = "--site";
inline constexpr const char* kCalendar = "--calendar";

// One GPU, or one key of one GPU: a table for each in configuration files.
inline constexpr const char* kWithGpu = "--with-gpu";
// What may be said of one GPU: the keys of its table.
std::vector<std::string> GpuKeys();

// Makes `app` parse into `flags`, which outlives it. Of a flag that is given more than once the last counts; of
// --event-budget, --profile, --with-gpu, --tenant, --site, --user and --calendar all do. The group of a flag is its
// table in configuration files, where those may name it at all (configurable).
void AddFlags(CLI::App& app, Flags& flags);
// May a configuration file name it?
bool IsConfigured(const CLI::Option& option);
// "gpu.soft_gpu_threads": its table and its key there.
std::string KeyOf(const CLI::Option& option);
// What the flags mean together; an error names the flag's value.
[[nodiscard]] Result<Config> ConfigOf(const Flags& flags);
// Why these are no flags, if so.
std::optional<std::string> ParseFlags(CLI::App& app, std::vector<std::string> arguments);

// A value of a flag that is on no command line: of a configuration file, or of one GPU.
struct FlagValue {
  std::string flag;  // "--base-slice-us"
  std::string text;  // "4000"
};
// Why the flag can't have this value, without its name, if so. Main thread.
std::optional<std::string> WhyNot(const FlagValue& value);
// Makes `app`, which AddFlags has filled, take the value as if it came before the command line that it parses next.
// WhyNot has found nothing wrong with the value.
void PutFirst(CLI::App& app, const FlagValue& value);

}  // namespace vgpud::daemon
