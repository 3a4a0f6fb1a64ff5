// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/workload_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "sched/registry.h"
#include "tools/sim/toml_table.h"

namespace vgpud::tools {
namespace {

using namespace std::chrono_literals;

constexpr Ns kMost = Distribution::kLongest;
constexpr int64_t kMostVfs = 4096;

// The range of a knob, from the scheduler's own table.
void ReadKnob(TomlTable& table, std::string_view key, Knob knob, Ns* out) {
  const KnobRow& row = RowOf(knob);
  table.Read(key, std::chrono::microseconds{row.min}, std::chrono::microseconds{row.max}, out);
}
template <class Int>
void ReadKnob(TomlTable& table, std::string_view key, Knob knob, Int* out) {
  const KnobRow& row = RowOf(knob);
  int64_t value = 0;
  if (table.Read(key, static_cast<int64_t>(row.min), static_cast<int64_t>(row.max), &value))
    *out = static_cast<Int>(value);
}
// A part of the GPU from 0.001 to 1.
void ReadPart(TomlTable& table, std::string_view key, Knob knob, uint32_t* out) {
  const KnobRow& row = RowOf(knob);
  double value = 0;
  if (table.Read(key, static_cast<double>(row.min) / kWhole, static_cast<double>(row.max) / kWhole, &value))
    *out = static_cast<uint32_t>(value * kWhole + 0.5);
}

void ReadGpu(TomlTable& t, GpuModel* gpu) {
  t.Read("name", &gpu->name);
  if (t.Read("policy", &gpu->policy))
    if (const auto row = FindPolicy(gpu->policy); !row)
      t.Wrong("policy", "\"" + gpu->policy + "\"", row.error().context);
  ReadKnob(t, "base_slice", Knob::kBaseSlice, &gpu->options.base_slice);
  ReadKnob(t, "max_wait", Knob::kMaxWait, &gpu->options.max_wait);
  ReadKnob(t, "min_slice", Knob::kMinSlice, &gpu->options.min_slice);
  ReadKnob(t, "max_slice", Knob::kMaxSlice, &gpu->options.max_slice);
  ReadKnob(t, "averaging_factor", Knob::kAveragingFactor, &gpu->options.averaging_factor);
  ReadKnob(t, "floor_percent", Knob::kFloorPercent, &gpu->options.floor_percent);
  ReadKnob(t, "idle_grace", Knob::kIdleGrace, &gpu->options.idle_grace);
  ReadKnob(t, "anticipate_percent", Knob::kAnticipatePercent, &gpu->options.anticipate_percent);
  ReadKnob(t, "anticipate", Knob::kAnticipate, &gpu->options.anticipate_most);
  size_t choice = 0;
  if (t.ReadChoice("idle", {"yield", "hold"}, &choice))
    gpu->options.idle = choice == 0 ? WhenIdle::kYield : WhenIdle::kHold;
  if (t.ReadChoice("preempt", {"instruction", "kernel"}, &choice)) gpu->preempts_at_kernel_end = choice == 1;
  t.ReadBytes("vram", &gpu->vram_bytes);
  t.Read("switch_cost", &gpu->switch_cost);
  t.Read("resume_cost", &gpu->resume_cost);
  t.Read("preempt_latency", &gpu->preempt_latency);
  t.Read("reset_cost", &gpu->reset_cost);
  t.Read("preempt_timeout", 100us, 10s, &gpu->preempt_timeout);
  int64_t limit = 0;
  if (t.Read("hang_limit", 1, 1000, &limit)) gpu->hang_limit = static_cast<uint32_t>(limit);
  t.Read("hang_window", 1ms, 24h, &gpu->hang_window);
  if (t.Read("take_back_alone", 0, 1, &limit)) gpu->take_back_alone = limit == 1;
  if (const auto ok = CheckOptions(gpu->options); !ok)
    t.Wrong("min_slice", FormatLength(gpu->options.min_slice), ok.error().context);
  t.RefuseOthers();
}

// What hostile guests do, unless their table says otherwise.
enum class Hostile : size_t { kEndless, kOverrunner, kSleeper, kSplitter, kStorm };

void MakeHostile(Hostile kind, const GpuModel& gpu, VfSpec* vf, int64_t* count) {
  const Ns slice = gpu.options.base_slice * vf->view.weight / kDefaultWeight;
  switch (kind) {
    case Hostile::kEndless:  // one kernel that never ends
      vf->kernel = Distribution::Fixed(kMost);
      break;
    case Hostile::kOverrunner:  // leaves as late as it may without being reset
      vf->overrun = Distribution::Fixed(gpu.preempt_timeout * 9 / 10);
      break;
    case Hostile::kSleeper:  // gives its turn away just before it is taken, and is back at once
      vf->arrival = Arrival::kBursty;
      vf->work = Distribution::Fixed((vf->view.slice > Ns{0} ? vf->view.slice : slice) * 95 / 100);
      vf->sleep = Distribution::Fixed(20us);
      break;
    case Hostile::kSplitter:  // many VFs in place of one
      *count = 4;
      break;
    case Hostile::kStorm:  // kernels so short that it is idle all the time
      vf->arrival = Arrival::kBursty;
      vf->work = vf->kernel = Distribution::Fixed(5us);
      vf->sleep = Distribution::Fixed(2us);
      break;
  }
}

uint8_t GroupNumber(TomlTable& t, GpuModel* gpu, const std::string& name) {
  auto& groups = gpu->groups;
  const auto known = std::find(groups.begin(), groups.end(), name);
  const auto number = static_cast<size_t>(known - groups.begin());
  if (number >= kMaxGroups)
    t.Wrong("group", "\"" + name + "\"", fmt::format("is one group too many: {} at most", int{kMaxGroups}));
  if (known == groups.end() && number < kMaxGroups) groups.push_back(name);
  return static_cast<uint8_t>(std::min<size_t>(number, kMaxGroups));
}

class File {
 public:
  explicit File(std::string name) : errors_(std::move(name)) {}

  Result<Workload> Read(std::string_view text) {
    ReadToml(text, errors_, [this](const toml::table& file) { ReadAll(file); });
    if (!errors_.empty()) return errors_.Refuse();
    return workload_;
  }

 private:
  void ReadAll(const toml::table& root);
  void ReadVf(const toml::table& table);
  void ReadLoad(TomlTable& t, VfSpec* vf);
  void ReadChange(const toml::table& table);
  void CheckAll(TomlTable& top);
  template <class F>
  void ForEach(const toml::table& root, TomlTable& top, std::string_view key, F&& f) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return;
    if (!node->is_array_of_tables()) return top.Wrong(key, "...", fmt::format("must be written as [[{}]]", key));
    for (const toml::node& element : *node->as_array()) f(*element.as_table());
  }

  TomlErrors errors_;
  Workload workload_;
};

void File::ReadAll(const toml::table& root) {
  TomlTable top(root, "", errors_);
  top.Read("duration", 1ms, 366 * 24h, &workload_.duration);
  top.ReadTimeOfDay("start", &workload_.time_of_day);
  int64_t seed = 1;
  if (top.Read("seed", 0, INT64_MAX, &seed)) workload_.seed = static_cast<uint64_t>(seed);
  if (const toml::node* gpu = root.get("gpu"); gpu != nullptr) {
    if (!gpu->is_table()) return top.Wrong("gpu", "...", "must be written as [gpu]");
    TomlTable table(*gpu->as_table(), "gpu", errors_);
    ReadGpu(table, &workload_.gpu);
  }
  ForEach(root, top, "group", [this](const toml::table& table) {
    std::string name;
    TomlTable t(table, "group", errors_);
    if (!t.Read("name", &name)) t.Wrong("name", "(nothing)", "every group needs a name");
    const uint8_t number = GroupNumber(t, &workload_.gpu, name);
    if (number < kMaxGroups) ReadKnob(t, "weight", Knob::kGroupWeight, &workload_.gpu.options.group_weights[number]);
    t.RefuseOthers();
  });
  ForEach(root, top, "vf", [this](const toml::table& table) { ReadVf(table); });
  ForEach(root, top, "change", [this](const toml::table& table) { ReadChange(table); });
  std::stable_sort(workload_.changes.begin(), workload_.changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  top.RefuseOthers({"gpu", "group", "vf", "change"});
  CheckAll(top);
}

void File::ReadVf(const toml::table& table) {
  VfSpec vf;
  TomlTable unnamed(table, "vf", errors_);
  if (!unnamed.Read("name", &vf.name)) unnamed.Wrong("name", "(nothing)", "every VF needs a name");
  TomlTable t(table, "vf " + vf.name, errors_);
  int64_t count = 1;
  ReadKnob(t, "weight", Knob::kWeight, &vf.view.weight);
  ReadKnob(t, "slice", Knob::kSlice, &vf.view.slice);
  ReadKnob(t, "priority", Knob::kPriority, &vf.view.priority);
  ReadPart(t, "guarantee", Knob::kGuarantee, &vf.view.guarantee);
  ReadPart(t, "limit", Knob::kLimit, &vf.view.limit);
  t.Read("burst", 0s, 1s, &vf.view.burst);
  ReadKnob(t, "wake_first", Knob::kWakeFirst, &vf.view.wake_first);
  size_t hostile = 0;
  if (t.ReadChoice("hostile", {"endless", "overrunner", "sleeper", "splitter", "storm"}, &hostile))
    MakeHostile(static_cast<Hostile>(hostile), workload_.gpu, &vf, &count);
  std::string group;
  if (t.Read("group", &group)) vf.view.group = GroupNumber(t, &workload_.gpu, group);
  t.ReadBytes("vram", &vf.vram_bytes);
  t.Read("count", 1, kMostVfs, &count);
  ReadLoad(t, &vf);
  Ns joins{0}, leaves{0};
  const bool late = t.Read("joins", 1ns, kMost, &joins);
  const bool early = t.Read("leaves", joins + 1ns, kMost, &leaves);
  t.RefuseOthers({"name"});
  const auto& vfs = workload_.vfs;
  for (int64_t i = 1; i <= count; ++i) {
    VfSpec& added = workload_.vfs.emplace_back(vf);
    if (count > 1) added.name = fmt::format("{}{}", vf.name, i);
    const auto same = std::find_if(vfs.begin(), vfs.end(), [&](const VfSpec& v) { return v.name == added.name; });
    if (same != vfs.end() - 1) t.Wrong("name", "\"" + added.name + "\"", "there is another VF of this name");
    if (static_cast<int64_t>(vfs.size()) > kMostVfs)
      t.Wrong("count", fmt::format("{}", count), fmt::format("there may be {} VFs in all", kMostVfs));
    added.view.vf = VfId{static_cast<uint32_t>(vfs.size() - 1)};
    if (late) workload_.changes.push_back({.at = joins, .vf = added.view.vf, .action = ChangeAction::kJoin});
    if (early) workload_.changes.push_back({.at = leaves, .vf = added.view.vf, .action = ChangeAction::kLeave});
    if (!errors_.empty()) return;
  }
}

void File::ReadLoad(TomlTable& t, VfSpec* vf) {
  size_t arrival = static_cast<size_t>(vf->arrival);
  if (t.ReadChoice("arrival", {"none", "always", "bursty", "poisson"}, &arrival))
    vf->arrival = static_cast<Arrival>(arrival);
  t.Read("work", &vf->work);
  const bool sleeps = t.Read("sleep", &vf->sleep);
  double duty = 0;
  if (t.Read("duty", 0.0001, 0.9999, &duty)) {
    if (sleeps) t.Wrong("duty", fmt::format("{}", duty), "give either duty or sleep, not both");
    const double mean = static_cast<double>(vf->work.Mean().count()) * (1 - duty) / duty;
    if (mean >= static_cast<double>(kMost.count()))
      t.Wrong("duty", fmt::format("{}", duty), "its sleeps are longer than ten years");
    else
      vf->sleep = Distribution::Exponential(Ns{static_cast<int64_t>(mean)});
  }
  t.Read("rate", 0.000001, 1e6, &vf->rate);
  const struct {
    std::string_view key;
    Arrival needs;
  } kNeeds[] = {{"duty", Arrival::kBursty}, {"sleep", Arrival::kBursty}, {"rate", Arrival::kPoisson}};
  for (const auto& need : kNeeds)
    if (t.Has(need.key) && vf->arrival != need.needs)
      t.Wrong(need.key, "...",
              fmt::format("only with arrival = \"{}\"", need.needs == Arrival::kBursty ? "bursty" : "poisson"));
  t.Read("hours", &vf->hours);
  t.Read("kernel", &vf->kernel);
  if (vf->kernel.Mean() < 100ns) t.Wrong("kernel", FormatLength(vf->kernel.Mean()), "must be 100ns or more");
  t.Read("overrun", &vf->overrun);
  t.Read("overrun_chance", 0.0, 1.0, &vf->overrun_chance);
  Distribution hangs = Distribution::Fixed(1s);
  if (t.Read("hang_every", &hangs)) vf->hang_every = hangs;
  t.Read("restart", &vf->restart);
}

void File::ReadChange(const toml::table& table) {
  TomlTable t(table, "change", errors_);
  Change change;
  std::string vf;
  if (!t.Read("at", 0s, kMost, &change.at)) t.Wrong("at", "(nothing)", "every change needs a time");
  if (!t.Read("vf", &vf)) t.Wrong("vf", "(nothing)", "every change needs a VF");
  const auto& vfs = workload_.vfs;
  const auto known = std::find_if(vfs.begin(), vfs.end(), [&](const VfSpec& v) { return v.name == vf; });
  if (known == vfs.end()) return t.Wrong("vf", "\"" + vf + "\"", "there is no such VF");
  change.vf = known->view.vf;
  size_t action = 0;
  if (t.ReadChoice("action", {"join", "leave", "pause", "resume", "reset"}, &action))
    change.action = static_cast<ChangeAction>(action + 1);
  VfView view = known->view;
  ReadKnob(t, "weight", Knob::kWeight, &view.weight);
  ReadKnob(t, "slice", Knob::kSlice, &view.slice);
  ReadPart(t, "guarantee", Knob::kGuarantee, &view.guarantee);
  ReadPart(t, "limit", Knob::kLimit, &view.limit);
  if (t.Has("weight")) change.weight = view.weight;
  if (t.Has("slice")) change.slice = view.slice;
  if (t.Has("guarantee")) change.guarantee = view.guarantee;
  if (t.Has("limit")) change.limit = view.limit;
  t.RefuseOthers();
  if (table.size() < 3)
    t.Wrong("vf", "\"" + vf + "\"", "nothing is changed: give action, weight, slice, guarantee or limit");
  workload_.changes.push_back(change);
}

// What no single key can be blamed for.
void File::CheckAll(TomlTable& top) {
  if (!errors_.empty()) return;
  if (workload_.vfs.empty()) return top.Wrong("vf", "(nothing)", "there must be a VF at least");
  const GpuModel& gpu = workload_.gpu;
  uint64_t vram = 0;
  std::vector<VfView> views;
  const auto row = FindPolicy(gpu.policy);
  for (const VfSpec& vf : workload_.vfs) {
    views.push_back(vf.view);
    vram += vf.vram_bytes;
    if (gpu.vram_bytes != 0 && vram > gpu.vram_bytes)
      return top.Wrong("vf", vf.name,
                       fmt::format("its vram does not fit: {} of {} MiB are taken by the VFs before it",
                                   (vram - vf.vram_bytes) >> 20, gpu.vram_bytes >> 20));
    if (const auto ok = CheckVf(**row, vf.name, vf.view); !ok) return top.Wrong("vf", vf.name, ok.error().context);
    if (const auto ok = CheckSlice(vf.name, vf.view, gpu.options); !ok)
      return top.Wrong("vf", vf.name, ok.error().context);
  }
  if (const auto ok = CheckGuarantees(views, gpu.options, gpu.switch_cost.Mean()); !ok)
    top.Wrong("vf", "(all)", ok.error().context);
}

}  // namespace

Result<Workload> ParseWorkload(std::string_view toml, const std::string& name) { return File(name).Read(toml); }

Result<Workload> LoadWorkload(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(text << file.rdbuf())) return FailErrno(path + ": can't be read");
  return ParseWorkload(text.str(), path);
}

}  // namespace vgpud::tools
