// SPDX-License-Identifier: Apache-2.0
// Reads and writes the knobs of sched/registry.h one by one, so that nobody else lists them: a number per knob, in the
// unit of its row (microseconds, millionths of the GPU).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sched/registry.h"

namespace vgpud {

// Knobs per VF only.
uint64_t KnobOf(const VfView& vf, Knob knob);
// `value` has passed CheckKnob, or is the default.
void SetKnob(VfView& vf, Knob knob, uint64_t value);
// Knobs of the GPU only, and not kGroupWeight, which is one per group.
uint64_t KnobOf(const PolicyOptions& options, Knob knob);
void SetKnob(PolicyOptions& options, Knob knob, uint64_t value);

// The knob of a VF or of the GPU that configurations call `name`; null: none, or kGroupWeight.
const KnobRow* FindKnobRow(std::string_view name, bool per_vf);

// As people write them in configuration files: "300", "0.25", "25%".
// In the unit of the row, its range checked. The error names the knob, the text and what is allowed.
[[nodiscard]] Result<uint64_t> ParseKnobText(const KnobRow& row, std::string_view text);
// "0.25" or "25%" as millionths (kWhole), up to `most` times the whole.
[[nodiscard]] Result<uint64_t> ParsePartText(std::string_view name, std::string_view text, double most = 1);

}  // namespace vgpud
