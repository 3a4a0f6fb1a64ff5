// SPDX-License-Identifier: Apache-2.0
#include "vgpud/flags/read_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "sched/knobs.h"
#include "vgpud/control/api.h"
#include "vgpud/flags/config_file.h"
#include "vgpud/flags/flags.h"

namespace vgpud::daemon {
namespace {

// Why they are no flags, if so.
std::optional<std::string> Parse(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(arguments);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
}

std::optional<std::string> WhyNotFlag(const std::string& flag) {
  Flags flags;
  CLI::App app;
  AddFlags(app, flags);
  auto refusal = Parse(app, {flag});
  const std::string name = flag.substr(0, flag.find('=')) + ": ";
  if (refusal && refusal->starts_with(name)) refusal->erase(0, name.size());
  return refusal;
}

Result<std::vector<std::string>> FlagsOfFiles(const Flags& flags, const CLI::App& known) {
  const bool system = flags.config.runtime_dir.empty() && control::DefaultRuntimeDir() == control::kSystemRuntimeDir;
  const std::string file = !flags.config_file.empty() ? flags.config_file : system ? kSystemConfigFile : "";
  std::vector<std::string> all;
  if (file.empty()) return all;
  for (const std::string& path : TRY(FindConfigFiles(file, !flags.config_file.empty()))) {
    const std::vector<std::string> more = TRY(ReadConfigFile(path, known, WhyNotFlag));
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::map<std::string, std::string> ValuesOf(const CLI::App& app) {
  std::map<std::string, std::string> values;
  for (const CLI::Option* option : app.get_options()) {
    if (!IsConfigured(*option)) continue;
    const std::vector<std::string> given = option->count() == 0 ? CLI::results_t() : option->reduced_results();
    values[KeyOf(*option)] = !given.empty() ? CLI::detail::join(given, " ") : option->get_default_str();
  }
  return values;
}

bool TakesEffectNow(std::string_view key) {
  if (key == "gpu.policy" || key == "gpu.idle") return true;
  return std::any_of(Knobs().begin(), Knobs().end(),
                     [&](const KnobRow& row) { return !row.per_vf && key == fmt::format("gpu.{}", row.name); });
}

}  // namespace

Result<Told> ReadConfig(const std::vector<std::string>& command_line) {
  Flags told;
  CLI::App first;
  AddFlags(first, told);
  if (const auto refusal = Parse(first, command_line)) return Fail(std::errc::invalid_argument, *refusal);
  std::vector<std::string> arguments = TRY(FlagsOfFiles(told, first));
  arguments.insert(arguments.end(), command_line.begin(), command_line.end());
  Flags flags;
  CLI::App app;
  AddFlags(app, flags);
  if (const auto refusal = Parse(app, arguments)) return Fail(std::errc::invalid_argument, *refusal);
  return Told{TRY(ConfigOf(flags)), ValuesOf(app)};
}

Reload PlanReload(const Told& before, const Told& after) {
  Reload reload;
  for (const auto& [key, value] : after.values) {
    const std::string& old = before.values.at(key);
    if (value == old) continue;
    (TakesEffectNow(key) ? reload.now : reload.at_restart).push_back(fmt::format("{} {} -> {}", key, old, value));
  }
  const GpuSettings &was = before.config.settings, &is = after.config.settings;
  if (was.policy != is.policy) reload.gpu.policy = is.policy;
  if (was.options.idle != is.options.idle) reload.gpu.idle = is.options.idle;
  for (const KnobRow& row : Knobs())
    if (!row.per_vf && row.knob != Knob::kGroupWeight && KnobOf(was.options, row.knob) != KnobOf(is.options, row.knob))
      reload.gpu.knobs.push_back({row.knob, KnobOf(is.options, row.knob)});
  return reload;
}

}  // namespace vgpud::daemon
