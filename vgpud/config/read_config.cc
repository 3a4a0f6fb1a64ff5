// SPDX-License-Identifier: Apache-2.0
#include "vgpud/config/read_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/event_budget.h"
#include "sched/knobs.h"
#include "vgpud/config/config_file.h"
#include "vgpud/config/flags.h"
#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

constexpr const char* kServed = "served";  // of "gpu.NAME"

Result<std::vector<FileValue>> ValuesOfFiles(const Flags& flags, const CLI::App& known) {
  const std::string& given = flags.config.runtime_dir;
  const bool system = (given.empty() ? control::DefaultRuntimeDir() : given) == control::kSystemRuntimeDir;
  const std::string file = !flags.config_file.empty() ? flags.config_file : system ? kSystemConfigFile : "";
  std::vector<FileValue> all;
  if (file.empty()) return all;
  for (const std::string& path : TRY(FindConfigFiles(file, !flags.config_file.empty()))) {
    const std::vector<FileValue> more = TRY(ReadConfigFile(path, known));
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// What was given for flags that have many keys: "opens=20" of the table event_budget, "small.vram=1GiB" of profile,
// "gpu1.policy=reserve" and "gpu1" of gpu.
void PutEach(const std::string& table, const std::vector<std::string>& given,
             std::map<std::string, std::string>* values) {
  for (const std::string& each : given) {
    const size_t equals = each.find('=');
    const std::string value = equals == std::string::npos ? kServed : each.substr(equals + 1);
    (*values)[fmt::format("{}.{}", table, each.substr(0, equals))] = value;
    const size_t dot = each.find('.');
    if (table == "gpu" && dot != std::string::npos) (*values)[fmt::format("gpu.{}", each.substr(0, dot))] = kServed;
  }
}

const std::map<std::string, std::string> kManyKeys = {{kEventBudget, "event_budget"},
                                                      {kProfile, "profile"},
                                                      {kWithGpu, "gpu"},
                                                      {kTenant, "tenant"},
                                                      {kSite, "site"},
                                                      {kUser, "user"},
                                                      {kCalendar, "calendar"}};

// `with_defaults`: of what was not given, too.
std::map<std::string, std::string> ValuesOf(const CLI::App& app, bool with_defaults) {
  std::map<std::string, std::string> values;
  for (size_t e = 0; with_defaults && e < kGuardedEvents; ++e)
    values[fmt::format("event_budget.{}", kEventNames[e])] = std::to_string(kDefaultEventBudgets[e]);
  for (const CLI::Option* option : app.get_options()) {
    if (!IsConfigured(*option)) continue;
    const std::vector<std::string> given = option->count() == 0 ? CLI::results_t() : option->reduced_results();
    const std::string flag = "--" + option->get_lnames().front();
    if (const auto table = kManyKeys.find(flag); table != kManyKeys.end())
      PutEach(table->second, given, &values);
    else if (!given.empty() || with_defaults)
      values[KeyOf(*option)] = !given.empty() ? given.back() : option->get_default_str();
  }
  return values;
}

constexpr const char* kNone = "(none)";

// Of the settings of a GPU that differ.
GpuPatch PatchOf(const GpuSettings& was, const GpuSettings& is) {
  GpuPatch patch;
  if (was.policy != is.policy) patch.policy = is.policy;
  if (was.options.idle != is.options.idle) patch.idle = is.options.idle;
  for (const KnobRow& row : Knobs())
    if (!row.per_vf && row.knob != Knob::kGroupWeight && KnobOf(was.options, row.knob) != KnobOf(is.options, row.knob))
      patch.knobs.push_back({row.knob, KnobOf(is.options, row.knob)});
  return patch;
}

}  // namespace

bool TakesEffectNow(std::string_view key) {
  for (const std::string_view table : {"profile.", "tenant.", "site.", "user.", "calendar."})
    if (key.starts_with(table)) return true;
  if (key == "daemon.others_may") return true;
  // "gpu.NAME.policy" as "gpu.policy".
  if (const size_t dot = key.rfind('.'); key.starts_with("gpu.") && dot > 3)
    return TakesEffectNow(fmt::format("gpu{}", key.substr(dot)));
  if (key == "gpu.policy" || key == "gpu.idle") return true;
  return std::any_of(Knobs().begin(), Knobs().end(),
                     [&](const KnobRow& row) { return !row.per_vf && key == fmt::format("gpu.{}", row.name); });
}

Result<Told> ReadConfig(const std::vector<std::string>& command_line) {
  Flags told;
  CLI::App first;
  AddFlags(first, told);
  if (const auto refusal = ParseFlags(first, command_line)) return Fail(std::errc::invalid_argument, *refusal);
  Flags flags;
  CLI::App app;
  AddFlags(app, flags);
  std::map<std::string, std::string> origins;
  for (const FileValue& each : TRY(ValuesOfFiles(told, first))) {
    PutFirst(app, each.value);
    origins[each.key] = each.where;
  }
  for (const auto& [key, value] : ValuesOf(first, false)) origins[key] = kFromFlag;
  if (const auto refusal = ParseFlags(app, command_line)) return Fail(std::errc::invalid_argument, *refusal);
  Told all{TRY(ConfigOf(flags)), ValuesOf(app, true), std::move(origins)};
  for (const auto& [key, value] : all.values) all.origins.emplace(key, kFromDefault);
  return all;
}

Reload PlanReload(const Told& before, const Told& after) {
  Reload reload;
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [key, value] : before.values) both[key] = {value, kNone};
  for (const auto& [key, value] : after.values) both.emplace(key, std::pair(kNone, "")).first->second.second = value;
  for (const auto& [key, values] : both) {
    if (values.first == values.second) continue;
    (TakesEffectNow(key) ? reload.now : reload.at_restart).push_back({key, values.first, values.second});
  }
  reload.gpu = PatchOf(before.config.settings, after.config.settings);
  for (const GpuConfig& was : before.config.gpus)
    for (const GpuConfig& is : after.config.gpus)
      if (was.name == is.name) reload.gpus.emplace_back(is.name, PatchOf(was.settings, is.settings));
  return reload;
}

}  // namespace vgpud::daemon
