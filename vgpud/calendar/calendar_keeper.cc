// SPDX-License-Identifier: Apache-2.0
#include "vgpud/calendar/calendar_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "sched/knobs.h"
#include "vgpud/model/setting_text.h"

namespace vgpud::daemon {
namespace {

constexpr int kSecondsPerMinute = 60;

template <class Patch>
Patch& Named(std::vector<std::pair<std::string, Patch>>* all, const std::string& name) {
  for (auto& [each, patch] : *all)
    if (each == name) return patch;
  return all->emplace_back(name, Patch{}).second;
}

// As people write it.
std::string Readable(const SettingKey& key, const std::string& value) {
  const KnobRow* row = FindKnobRow(key.field, !key.vf.empty());
  if (row == nullptr || row->unit != KnobUnit::kPart) return value;
  return fmt::format("{:g}", static_cast<double>(std::stoull(value)) / kWhole);
}

// A weight ends a fixed slice (model/settings.h), which is to come back with the weight that was.
void AddSlices(SettingValues* wanted) {
  const std::string weight(RowOf(Knob::kWeight).name), slice(RowOf(Knob::kSlice).name);
  SettingValues more;
  for (const auto& [key, value] : *wanted)
    if (!key.vf.empty() && key.field == weight) more.insert({{key.vf, {}, slice}, std::to_string(0)});
  wanted->merge(more);
}

// A weight that is put back must not end a slice that somebody has fixed meanwhile.
SettingValues KeepSlices(SettingValues changes, const Overlay::Current& current) {
  const std::string weight(RowOf(Knob::kWeight).name), slice(RowOf(Knob::kSlice).name);
  SettingValues more;
  for (const auto& [key, value] : changes)
    if (const SettingKey its{key.vf, {}, slice}; !key.vf.empty() && key.field == weight)
      if (const auto is = current(its)) more.insert({its, is->text});
  changes.merge(more);
  return changes;
}

}  // namespace

Result<SettingsPatch> PatchOf(const SettingValues& values) {
  SettingsPatch patch;
  for (const auto& [key, value] : values) {
    if (key.vf.empty() && key.gpu.empty() && !patch.gpu) patch.gpu.emplace();
    const auto put = !key.vf.empty()   ? PutSetting(key.field, value, &Named(&patch.vfs, key.vf))
                     : key.gpu.empty() ? PutSetting(key.field, value, &*patch.gpu)
                                       : PutSetting(key.field, value, &Named(&patch.gpus, key.gpu));
    if (!put)
      return Fail(put.error().code, fmt::format("{} can't be \"{}\": {}", key.Text(), value, put.error().context));
  }
  return patch;
}

CalendarKeeper::CalendarKeeper(EventLoop& loop, World world)
    : world_(std::move(world)), timer_(loop.Timer([this] { Look(); })) {}

void CalendarKeeper::Begin(Calendar calendar, std::string_view kept) {
  overlay_ = Overlay::Read(kept);
  overlay_.ForgetUnlessInForce(world_.current);
  SetCalendar(std::move(calendar));
}

void CalendarKeeper::SetCalendar(Calendar calendar) {
  calendar_ = std::move(calendar);
  Look();
}

void CalendarKeeper::Arm() {
  if (calendar_.empty() && overlay_.held().empty()) return;
  timer_->Arm(std::chrono::seconds{std::max(1, kSecondsPerMinute - world_.local_time().tm_sec)});
}

SettingValues CalendarKeeper::WantedNow() const {
  SettingValues wanted = WantedAt(calendar_, world_.local_time());
  AddSlices(&wanted);
  return wanted;
}

void CalendarKeeper::Look() {
  Arm();
  if (changing_) {
    again_ = true;
    return;
  }
  Overlay::Step step = overlay_.To(WantedNow(), world_.current);
  if (step.changes.empty() && step.after == overlay_.held()) return problem_.clear();
  changing_ = true;
  Make(std::move(step), false);
}

void CalendarKeeper::Make(Overlay::Step step, bool alone) {
  const auto refused = [this, alone, changes = step.changes](const std::string& why) {
    if (alone) refused_ += (refused_.empty() ? "" : "; ") + why;
    if (!alone)
      for (const auto& [key, value] : changes)
        if (targets_.empty() || targets_.back().vf != key.vf || targets_.back().gpu != key.gpu) targets_.push_back(key);
    MakeNext();
  };
  // Before anything is in force that is to be put back.
  const bool more = std::any_of(step.after.begin(), step.after.end(), [&](const auto& each) {
    const auto held = overlay_.held().find(each.first);
    return held == overlay_.held().end() || held->second != each.second;
  });
  const std::string text = Overlay::Write(step.after);
  world_.keep(text, [this, refused, more, step = std::move(step)](const std::string& problem) mutable {
    if (more && !problem.empty()) return refused(problem);
    const auto taken = [this, step] {
      for (const auto& [key, value] : step.changes)
        LOG(kInfo, "calendar: {} is {} now", key.Text(), Readable(key, value));
      overlay_.Take(step);
      MakeNext();
    };
    if (step.changes.empty()) return taken();
    const auto patch = PatchOf(KeepSlices(step.changes, world_.current));
    if (!patch) return refused(patch.error().context);
    world_.change(*patch,
                  [refused, taken](const std::string& refusal) { refusal.empty() ? taken() : refused(refusal); });
  });
}

void CalendarKeeper::MakeNext() {
  if (targets_.empty()) return Finish();
  const SettingKey target = targets_.back();
  targets_.pop_back();
  Overlay::Step step = overlay_.Only(overlay_.To(WantedNow(), world_.current), target);
  step.changes.empty() ? MakeNext() : Make(std::move(step), true);
}

void CalendarKeeper::Finish() {
  changing_ = false;
  const std::string refused = std::exchange(refused_, {});
  if (!refused.empty()) {
    if (problem_ != refused) LOG(kError, "calendar: not all is as it says, tried again every minute: {}", refused);
    world_.keep(Overlay::Write(overlay_.held()), [](const std::string&) {});
  }
  problem_ = refused;
  if (std::exchange(again_, false)) Look();
}

std::vector<CalendarKeeper::PeriodReport> CalendarKeeper::Report() const {
  const std::tm now = world_.local_time();
  std::vector<PeriodReport> reports;
  for (const Period& period : calendar_) {
    reports.push_back({period.name, period.When(), Holds(period, now), {}});
    for (const auto& [key, value] : period.settings)
      reports.back().settings.push_back(fmt::format("{} = {}", key.Text(), Readable(key, value)));
  }
  return reports;
}

}  // namespace vgpud::daemon
