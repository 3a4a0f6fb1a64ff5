// SPDX-License-Identifier: Apache-2.0
#include "vgpud/live/configuration.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "vgpud/model/setting_text.h"

namespace vgpud::daemon {
namespace {

constexpr const char* kNone = "(none)";

std::string At(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto it = values.find(key);
  return it != values.end() ? it->second : kNone;
}

// What differs, with keys that begin with `table`.
void PutLive(const std::string& table, const GpuSettings& was, const GpuSettings& is,
             std::map<std::string, std::string>* live) {
  for (const std::string& field : GpuFields())
    if (const auto text = SettingText(is, field); text != SettingText(was, field))
      (*live)[fmt::format("{}.{}", table, field)] = *text;
}

}  // namespace

Configuration::Configuration(const ServedGpus& gpus, Changes& changes, VfLimits& limits, const Told& told,
                             ReadAgain read_again, CalendarKeeper* calendar)
    : gpus_(gpus),
      changes_(changes),
      limits_(limits),
      told_(told),
      read_again_(std::move(read_again)),
      calendar_(calendar),
      values_(told.values),
      origins_(told.origins) {
  changes_.OnGpuSettings([this] { changed_(); });
}

const GpuSettings& Configuration::ToldOf(const ServedGpu& gpu) const {
  const auto& told = told_.config.gpus;
  const auto it =
      std::find_if(told.begin(), told.end(), [&](const GpuConfig& each) { return each.name == gpu.name(); });
  // One that the files do not name any more has only what it was started with.
  return it != told.end() ? it->settings : gpu.config().settings;
}

std::map<std::string, std::string> Configuration::Live() const {
  std::map<std::string, std::string> live;
  for (const auto& gpu : gpus_.all()) {
    const std::string table = fmt::format("gpu.{}", gpu->name());
    PutLive(told_.values.contains(table) ? table : "gpu", ToldOf(*gpu), gpu->settings(), &live);
  }
  return live;
}

std::vector<Configuration::Value> Configuration::Show() const {
  std::map<std::string, Value> all;
  for (const auto& [key, text] : values_) all[key] = {key, text, At(origins_, key), {}};
  for (const auto& [key, text] : Live()) all[key] = {key, text, kFromLive, At(values_, key)};
  std::vector<Value> list;
  for (auto& [key, value] : all) list.push_back(std::move(value));
  return list;
}

std::vector<LiveSetting> Configuration::LiveSettings(const ServedGpu& gpu) const {
  std::map<std::string, std::string> live;
  PutLive("gpu", ToldOf(gpu), gpu.settings(), &live);
  const auto values = ValuesOfGpu(told_.values, gpu.name());
  std::vector<LiveSetting> list;
  for (const auto& [key, text] : live) {
    const auto it = values.find(key);
    list.push_back({key, text, it != values.end() ? it->second : std::string()});
  }
  return list;
}

ApiResult<std::vector<Configuration::Difference>> Configuration::Diff() const {
  const auto told = read_again_();
  if (!told) return ApiFail(ErrorKind::kInvalid, told.error().context);
  const auto live = Live();
  std::set<std::string> keys;
  for (const auto* values : {&values_, &told->values, &live})
    for (const auto& [key, value] : *values) keys.insert(key);
  std::vector<Difference> list;
  for (const std::string& key : keys) {
    const bool is_live = live.contains(key);
    const std::string running = At(is_live ? live : values_, key), wanted = At(told->values, key);
    if (running == wanted) continue;
    const bool said_anew = At(told_.values, key) != wanted;
    list.push_back({key, running, wanted,
                    is_live && !said_anew ? "never"
                    : TakesEffectNow(key) ? "reload"
                                          : "restart"});
  }
  return list;
}

void Configuration::Reload(bool dry_run, Reply<Reloaded> done) {
  auto told = read_again_();
  if (!told) return done(ApiFail(ErrorKind::kInvalid, told.error().context));
  const daemon::Reload reload = PlanReload(told_, *told);
  changes_.Make({{}, {}, reload.gpus}, {"a reload of the configuration", dry_run},
                [this, dry_run, reload, told = *told, done](const ApiResult<ChangeReport>& change) {
                  if (!change) return done(tl::unexpected(change.error()));
                  if (dry_run) return done(Reloaded{reload.now, reload.at_restart, {}});
                  told_ = told;
                  changed_();
                  for (const auto& gpu : gpus_.all())
                    for (const GpuConfig& is : told.config.gpus)
                      if (is.name == gpu->name()) gpu->SetProfiles(is.profiles);
                  limits_.Set(told.config.tenants, told.config.site);
                  if (calendar_ != nullptr) calendar_->SetCalendar(told.config.calendar);
                  for (const ConfigChange& each : reload.now) {
                    values_.erase(each.key);
                    origins_.erase(each.key);
                    if (const auto it = told.values.find(each.key); it != told.values.end()) values_.insert(*it);
                    if (const auto it = told.origins.find(each.key); it != told.origins.end()) origins_.insert(*it);
                  }
                  done(Reloaded{reload.now, reload.at_restart, change->round.value_or(0)});
                });
}

}  // namespace vgpud::daemon
