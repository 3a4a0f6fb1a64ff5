// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sched/knobs.h"

namespace vgpud::daemon {
namespace {

// FNV-1a, as many bits of it as a number of JSON has.
uint64_t Fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return std::max<uint64_t>((hash ^ (hash >> 53)) & ((uint64_t{1} << 53) - 1), 1);
}

std::vector<VfView> Views(const Settings& settings) {
  std::vector<VfView> views;
  for (const VfSettings& vf : settings.vfs) {
    views.push_back(vf.view);
    views.back().runnable = !vf.view.paused;
  }
  return views;
}

// A knob that some VFs use and that the policy does not have is named once, with all of them.
Checked CheckPolicyKnows(const PolicyRow& policy, const Settings& before, const Settings& after) {
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf || policy.Understands(row.knob)) continue;
    const uint64_t unused = KnobOf(VfView{}, row.knob);
    std::string names;
    for (const VfSettings& vf : after.vfs)
      if (KnobOf(vf.view, row.knob) != unused) names += (names.empty() ? "" : ", ") + vf.name;
    if (names.empty()) continue;
    if (before.gpu.policy != after.gpu.policy)
      return Refuse(fmt::format("policy {} has no {}, but these VFs have one: {}; take it away first (vgpuctl set NAME "
                                "--{} none)",
                                policy.name, row.name, names, row.name.substr(0, row.name.find("_us"))),
                    {kPolicyField, row.name});
    return Refuse(fmt::format("policy {} has no {}, wanted for VF {}: change the policy to reserve first", policy.name,
                              row.name, names),
                  {row.name, kPolicyField});
  }
  return {};
}

Checked CheckRoom(const Settings& before, const Settings& after, Ns switch_cost) {
  const Ns cost = std::max(switch_cost, kLeastSwitchCost);
  const auto room = RoomForGuarantees(Views(after), after.gpu.options, cost);
  const auto had = RoomForGuarantees(Views(before), before.gpu.options, cost);
  if (room.asked <= had.asked && room.available >= had.available) return {};
  return CheckGuarantees(Views(after), after.gpu.options, cost);
}

std::optional<uint64_t> Given(const VfPatch& patch, Knob knob) {
  for (const KnobValue& given : patch.knobs)
    if (given.knob == knob) return given.value;
  return std::nullopt;
}

uint64_t Us(Ns time) { return static_cast<uint64_t>(time / std::chrono::microseconds{1}); }
double Rounded(double share) { return std::round(share * kWhole) / kWhole; }

class Comparison {
 public:
  Difference Of(const Settings& before, const Settings& after) {
    CompareGpu(before.gpu, after.gpu);
    const auto expected_before = ExpectedShares(before), expected_after = ExpectedShares(after);
    auto was = before.vfs.begin();
    for (size_t i = 0; i < after.vfs.size(); ++i) {
      const VfSettings& vf = after.vfs[i];
      while (was != before.vfs.end() && was->view.vf < vf.view.vf) ++was;
      if (was == before.vfs.end() || was->view.vf != vf.view.vf) {
        Note(difference_.effects, vf.name, "share", 0.0, Rounded(expected_after[i].share));
        continue;
      }
      const ExpectedShare& expected_was = expected_before[static_cast<size_t>(was - before.vfs.begin())];
      const bool asked = CompareVf(vf.name, was->view, vf.view);
      CompareMemory(vf.name, was->memory, vf.memory);
      Note(asked ? difference_.changes : difference_.effects, vf.name, "slice_us", Us(expected_was.slice),
           Us(expected_after[i].slice));
      Note(difference_.effects, vf.name, "share", Rounded(expected_was.share), Rounded(expected_after[i].share));
    }
    return std::move(difference_);
  }

 private:
  static void Note(std::vector<Change>& list, const std::string& vf, std::string field, FieldValue was, FieldValue is) {
    if (was != is) list.push_back({vf, std::move(field), std::move(was), std::move(is)});
  }
  void CompareGpu(const GpuSettings& before, const GpuSettings& after) {
    auto& list = difference_.changes;
    Note(list, "", "policy", before.policy, after.policy);
    Note(list, "", "idle", std::string(NameOf(before.options.idle)), std::string(NameOf(after.options.idle)));
    for (const KnobRow& row : Knobs())
      if (!row.per_vf && row.knob != Knob::kGroupWeight)
        Note(list, "", std::string(row.name), ToField(row, KnobOf(before.options, row.knob)),
             ToField(row, KnobOf(after.options, row.knob)));
    for (size_t group = 0; group < kMaxGroups; ++group)
      Note(list, "", fmt::format("{}.{}", RowOf(Knob::kGroupWeight).name, group),
           uint64_t{before.options.group_weights[group]}, uint64_t{after.options.group_weights[group]});
  }
  // Was its slice asked to change?
  bool CompareVf(const std::string& name, const VfView& before, const VfView& after) {
    auto& list = difference_.changes;
    for (const KnobRow& row : Knobs())
      if (row.per_vf && row.knob != Knob::kSlice)
        Note(list, name, std::string(row.name), ToField(row, KnobOf(before, row.knob)),
             ToField(row, KnobOf(after, row.knob)));
    Note(list, name, "slice_fixed", before.slice != Ns{0}, after.slice != Ns{0});
    Note(list, name, "paused", before.paused, after.paused);
    return before.weight != after.weight || before.slice != after.slice;
  }

  void CompareMemory(const std::string& name, const VfMemory& before, const VfMemory& after) {
    Note(difference_.changes, name, "vram_bytes", before.vram_bytes, after.vram_bytes);
    Note(difference_.changes, name, "host_memory_bytes", before.host_memory_bytes, after.host_memory_bytes);
  }

  Difference difference_;
};

}  // namespace

void Apply(const VfPatch& patch, VfView& view) {
  const auto weight = Given(patch, Knob::kWeight);
  if (weight && *weight != view.weight) view.slice = Ns{0};
  for (const KnobValue& given : patch.knobs) SetKnob(view, given.knob, given.value);
  view.paused = patch.paused.value_or(view.paused);
}

void Apply(const VfPatch& patch, VfMemory& memory) {
  memory.vram_bytes = patch.vram_bytes.value_or(memory.vram_bytes);
  memory.host_memory_bytes = patch.host_memory_bytes.value_or(memory.host_memory_bytes);
}

void Apply(const GpuPatch& patch, GpuSettings& gpu) {
  gpu.policy = patch.policy.value_or(gpu.policy);
  gpu.options.idle = patch.idle.value_or(gpu.options.idle);
  for (const KnobValue& given : patch.knobs) SetKnob(gpu.options, given.knob, given.value);
  for (const auto& [group, weight] : patch.group_weights) gpu.options.group_weights[group] = weight;
}

std::vector<std::string> Warnings(const SettingsPatch& patch, const Settings& before, const Settings& after) {
  std::vector<std::string> warnings;
  const auto view_in = [](const Settings& settings, const std::string& name) -> const VfView* {
    for (const VfSettings& vf : settings.vfs)
      if (vf.name == name) return &vf.view;
    return nullptr;
  };
  for (const auto& [name, vf] : patch.vfs) {
    const VfView *was = view_in(before, name), *is = view_in(after, name);
    if (was == nullptr || is == nullptr || was->slice == Ns{0} || is->slice != Ns{0} || Given(vf, Knob::kSlice))
      continue;
    warnings.push_back(
        fmt::format("{}: weight {} ends its fixed slice of {} us, as a fixed slice has the same share whatever the "
                    "weight; vgpuctl set {} --slice {}us fixes it again",
                    name, is->weight, Us(was->slice), name, Us(was->slice)));
  }
  return warnings;
}

Checked CheckChange(const Settings& before, const Settings& after, Ns switch_cost) {
  const auto found = FindPolicy(after.gpu.policy);
  if (!found) return Refuse(found.error().context, {kPolicyField});
  const PolicyRow* policy = *found;
  TRY(CheckOptions(after.gpu.options));
  if (after.gpu.options.idle == WhenIdle::kHold && !policy->holds)
    return Refuse(fmt::format("policy {} has no idle hold: set idle to yield, or use another policy", policy->name),
                  {kIdleField, kPolicyField});
  TRY(CheckPolicyKnows(*policy, before, after));
  for (const VfSettings& vf : after.vfs) {
    TRY(CheckVf(*policy, vf.name, vf.view));
    TRY(CheckSlice(vf.name, vf.view, after.gpu.options));
  }
  return CheckRoom(before, after, switch_cost);
}

std::string FieldToBlame(const Refusal& refusal, const SettingsPatch& patch) {
  std::vector<std::string_view> given;
  if (patch.gpu) {
    if (patch.gpu->policy) given.push_back(kPolicyField);
    if (patch.gpu->idle) given.push_back(kIdleField);
    for (const KnobValue& knob : patch.gpu->knobs) given.push_back(RowOf(knob.knob).name);
    if (!patch.gpu->group_weights.empty()) given.push_back(RowOf(Knob::kGroupWeight).name);
  }
  for (const auto& [name, vf] : patch.vfs)
    for (const KnobValue& knob : vf.knobs) given.push_back(RowOf(knob.knob).name);
  for (const std::string_view field : refusal.fields)
    if (std::find(given.begin(), given.end(), field) != given.end()) return std::string(field);
  return std::string(given.empty() ? "" : given[0]);
}

std::vector<ExpectedShare> ExpectedShares(const Settings& settings) {
  const auto policy = MakePolicy(settings.gpu.policy, settings.gpu.options);
  CHECK(policy);
  const std::vector<VfView> views = Views(settings);
  (*policy)->Show(views, TimePoint{});
  std::vector<uint64_t> shares(views.size());
  const uint64_t whole = (*policy)->Entitled(views, shares);
  std::vector<ExpectedShare> expected;
  for (size_t i = 0; i < views.size(); ++i)
    expected.push_back({(*policy)->FullSlice(views[i]),
                        whole == 0 ? 0 : static_cast<double>(shares[i]) / static_cast<double>(whole),
                        (*policy)->WakeBound(views, views[i].vf).value_or(Ns{0})});
  return expected;
}

std::string_view NameOf(WhenIdle idle) { return idle == WhenIdle::kHold ? "hold" : "yield"; }

FieldValue ToField(const KnobRow& row, uint64_t value) {
  if (row.unit == KnobUnit::kPart) return static_cast<double>(value) / kWhole;
  if (row.knob == Knob::kGroup && value == kNoGroup) return std::monostate{};
  return value;
}

uint64_t RevisionOf(std::string_view of, const VfView& vf, const VfMemory& memory) {
  std::string text = fmt::format("{} {} {} {}", of, vf.paused, memory.vram_bytes, memory.host_memory_bytes);
  for (const KnobRow& row : Knobs())
    if (row.per_vf) text += fmt::format(" {}", KnobOf(vf, row.knob));
  return Fingerprint(text);
}

uint64_t RevisionOf(std::string_view of, const GpuSettings& gpu) {
  std::string text = fmt::format("{} {} {}", of, gpu.policy, NameOf(gpu.options.idle));
  for (const KnobRow& row : Knobs())
    if (!row.per_vf && row.knob != Knob::kGroupWeight) text += fmt::format(" {}", KnobOf(gpu.options, row.knob));
  for (const uint32_t weight : gpu.options.group_weights) text += fmt::format(" {}", weight);
  return Fingerprint(text);
}

Difference Compare(const Settings& before, const Settings& after) { return Comparison{}.Of(before, after); }

}  // namespace vgpud::daemon
