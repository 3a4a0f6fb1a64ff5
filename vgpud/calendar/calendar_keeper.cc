// SPDX-License-Identifier: Apache-2.0
#include "vgpud/calendar/calendar_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "sched/knobs.h"

namespace vgpud::daemon {
namespace {

constexpr int kSecondsPerMinute = 60;
constexpr const char* kPaused = "paused";
constexpr const char* kTrue = "true";

const KnobRow* FindKnobRow(std::string_view name, bool per_vf) {
  for (const KnobRow& row : Knobs())
    if (row.name == name && row.per_vf == per_vf && row.knob != Knob::kGroupWeight) return &row;
  return nullptr;
}

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

// A weight ends a fixed slice (settings.h), which is to come back with the weight that was.
void AddSlices(SettingValues* wanted) {
  const std::string weight(RowOf(Knob::kWeight).name), slice(RowOf(Knob::kSlice).name);
  SettingValues more;
  for (const auto& [key, value] : *wanted)
    if (!key.vf.empty() && key.field == weight) more.insert({{key.vf, {}, slice}, std::to_string(0)});
  wanted->merge(more);
}

}  // namespace

SettingsPatch PatchOf(const SettingValues& values) {
  SettingsPatch patch;
  for (const auto& [key, value] : values) {
    const KnobRow* row = FindKnobRow(key.field, !key.vf.empty());
    if (!key.vf.empty()) {
      VfPatch& vf = Named(&patch.vfs, key.vf);
      if (row != nullptr)
        vf.knobs.push_back({row->knob, std::stoull(value)});
      else
        vf.paused = value == kTrue;
      continue;
    }
    if (key.gpu.empty() && !patch.gpu) patch.gpu.emplace();
    GpuPatch& gpu = key.gpu.empty() ? *patch.gpu : Named(&patch.gpus, key.gpu);
    if (row != nullptr)
      gpu.knobs.push_back({row->knob, std::stoull(value)});
    else if (key.field == kPolicyField)
      gpu.policy = value;
    else
      gpu.idle = value == NameOf(WhenIdle::kHold) ? WhenIdle::kHold : WhenIdle::kYield;
  }
  return patch;
}

std::optional<std::string> SettingText(const VfView& vf, const std::string& field) {
  if (field == kPaused) return vf.paused ? kTrue : "false";
  const KnobRow* row = FindKnobRow(field, true);
  return row != nullptr ? std::optional(std::to_string(KnobOf(vf, row->knob))) : std::nullopt;
}

std::optional<std::string> SettingText(const GpuSettings& gpu, const std::string& field) {
  if (field == kPolicyField) return gpu.policy;
  if (field == kIdleField) return std::string(NameOf(gpu.options.idle));
  const KnobRow* row = FindKnobRow(field, false);
  return row != nullptr ? std::optional(std::to_string(KnobOf(gpu.options, row->knob))) : std::nullopt;
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

void CalendarKeeper::Look() {
  Arm();
  if (changing_) {
    again_ = true;
    return;
  }
  SettingValues wanted = WantedAt(calendar_, world_.local_time());
  AddSlices(&wanted);
  Overlay::Step step = overlay_.To(wanted, world_.current);
  if (step.changes.empty()) {
    problem_.clear();
    if (step.after == overlay_.held()) return;
    world_.keep(Overlay::Write(step.after));
    return overlay_.Take(std::move(step));
  }
  changing_ = true;
  // Before it is in force: a vgpud that is killed in between leaves a line too many, which the next one drops.
  world_.keep(Overlay::Write(step.after));
  const SettingsPatch patch = PatchOf(step.changes);
  world_.change(patch, [this, step = std::move(step)](const std::string& refusal) mutable {
    changing_ = false;
    if (refusal.empty()) {
      for (const auto& [key, value] : step.changes)
        LOG(kInfo, "calendar: {} is {} now", key.Text(), Readable(key, value));
      overlay_.Take(std::move(step));
    } else {
      if (problem_ != refusal) LOG(kError, "calendar: nothing is changed, tried again every minute: {}", refusal);
      world_.keep(Overlay::Write(overlay_.held()));
    }
    problem_ = refusal;
    if (std::exchange(again_, false)) Look();
    Arm();
  });
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
