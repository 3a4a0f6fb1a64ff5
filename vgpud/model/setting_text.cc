// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/setting_text.h"

#include <fmt/core.h>

#include "base/text/numbers.h"
#include "sched/knobs.h"

namespace vgpud::daemon {
namespace {

constexpr std::string_view kPaused = "paused";
constexpr std::string_view kFalseTrue[] = {"false", "true"};

auto Unknown() { return Fail(std::errc::invalid_argument, "this vgpud does not know it"); }

Result<uint64_t> ParseNumber(std::string_view text) {
  const auto number = ParseInteger<uint64_t>(text);
  if (!number) return Fail(std::errc::invalid_argument, "it is no number");
  return *number;
}

// A default may be out of the knob's range: it stands for none.
Result<KnobValue> ParseValue(const KnobRow& row, std::string_view text) {
  const uint64_t value = TRY(ParseNumber(text));
  if (value != (row.per_vf ? KnobOf(VfView{}, row.knob) : KnobOf(DefaultOptions(), row.knob)))
    TRY(CheckKnob(row.knob, value));
  return KnobValue{row.knob, value};
}

// The text behind "group_weight."; nothing: `field` is something else.
std::optional<std::string_view> GroupOf(std::string_view field) {
  const std::string_view name = RowOf(Knob::kGroupWeight).name;
  if (!field.starts_with(name) || field.size() == name.size() || field[name.size()] != '.') return std::nullopt;
  return field.substr(name.size() + 1);
}

Result<uint8_t> ParseGroup(std::string_view text) {
  const auto number = ParseInteger<uint64_t>(text);
  if (!number || *number >= kMaxGroups) return Fail(std::errc::invalid_argument, "there is no such group");
  return static_cast<uint8_t>(*number);
}

}  // namespace

std::optional<std::string> SettingText(const VfView& vf, std::string_view field) {
  if (field == kPaused) return std::string(kFalseTrue[vf.paused]);
  const KnobRow* row = FindKnobRow(field, true);
  return row != nullptr ? std::optional(std::to_string(KnobOf(vf, row->knob))) : std::nullopt;
}

std::optional<std::string> SettingText(const GpuSettings& gpu, std::string_view field) {
  if (field == kPolicyField) return gpu.policy;
  if (field == kIdleField) return std::string(NameOf(gpu.options.idle));
  if (const auto text = GroupOf(field)) {
    const auto group = ParseGroup(*text);
    return group ? std::optional(std::to_string(gpu.options.group_weights[*group])) : std::nullopt;
  }
  const KnobRow* row = FindKnobRow(field, false);
  return row != nullptr ? std::optional(std::to_string(KnobOf(gpu.options, row->knob))) : std::nullopt;
}

Result<void> PutSetting(std::string_view field, std::string_view text, VfPatch* patch) {
  if (const KnobRow* row = FindKnobRow(field, true)) {
    patch->knobs.push_back(TRY(ParseValue(*row, text)));
    return {};
  }
  if (field != kPaused || (text != kFalseTrue[0] && text != kFalseTrue[1])) return Unknown();
  patch->paused = text == kFalseTrue[1];
  return {};
}

Result<void> PutSetting(std::string_view field, std::string_view text, GpuPatch* patch) {
  if (const KnobRow* row = FindKnobRow(field, false)) {
    patch->knobs.push_back(TRY(ParseValue(*row, text)));
    return {};
  }
  if (const auto group = GroupOf(field)) {
    const uint64_t weight = TRY(ParseNumber(text));
    const uint8_t number = TRY(ParseGroup(*group));
    TRY(CheckKnob(Knob::kGroupWeight, weight));
    patch->group_weights.emplace_back(number, static_cast<uint32_t>(weight));
    return {};
  }
  if (field == kPolicyField) {
    patch->policy = std::string(TRY(FindPolicy(text))->name);
    return {};
  }
  for (const WhenIdle idle : {WhenIdle::kYield, WhenIdle::kHold})
    if (field == kIdleField && NameOf(idle) == text) {
      patch->idle = idle;
      return {};
    }
  return Unknown();
}

std::vector<std::string> GpuFields() {
  std::vector<std::string> fields = {std::string(kPolicyField), std::string(kIdleField)};
  for (const KnobRow& row : Knobs()) {
    if (row.per_vf) continue;
    if (row.knob != Knob::kGroupWeight) fields.emplace_back(row.name);
    for (size_t group = 0; row.knob == Knob::kGroupWeight && group < kMaxGroups; ++group)
      fields.push_back(fmt::format("{}.{}", row.name, group));
  }
  return fields;
}

}  // namespace vgpud::daemon
