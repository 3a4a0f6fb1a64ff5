// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/knobs.h"

#include <fmt/core.h>

#include <algorithm>

#include "sched/registry.h"

namespace vgpud::control {
namespace {

static_assert(static_cast<int>(Unit::kPercent) == static_cast<int>(KnobUnit::kPercent));
static_assert(static_cast<int>(Unit::kPart) == static_cast<int>(KnobUnit::kPart));

std::string Option(const KnobRow& row) {
  std::string option(row.name);
  if (row.unit == KnobUnit::kMicroseconds) option.erase(option.rfind("_us"));
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

std::vector<KnobInfo> Make() {
  std::vector<KnobInfo> knobs;
  for (const KnobRow& row : vgpud::Knobs())
    knobs.push_back({std::string(row.name), Option(row), static_cast<Unit>(row.unit), row.per_vf,
                     row.knob == Knob::kGroupWeight, std::string(row.about), row.min, row.max, row.zero_too});
  return knobs;
}

}  // namespace

const std::vector<KnobInfo>& Knobs() {
  static const std::vector<KnobInfo> kAll = Make();
  return kAll;
}

const KnobInfo* FindKnob(const std::string& field) {
  for (const KnobInfo& knob : Knobs())
    if (knob.field == field) return &knob;
  return nullptr;
}

std::string AboutPolicies() {
  std::string about;
  for (const PolicyRow& row : Policies())
    about += fmt::format("{}{}: {}", about.empty() ? "" : "; ", row.name, row.about);
  return about;
}

}  // namespace vgpud::control
