// SPDX-License-Identifier: Apache-2.0
// Reads and writes the knobs of sched/registry.h one by one, so that nobody else lists them: a number per knob, in the
// unit of its row (microseconds, millionths of the GPU).
#pragma once

#include "sched/registry.h"

namespace vgpud {

// Knobs per VF only.
uint64_t KnobOf(const VfView& vf, Knob knob);
// `value` has passed CheckKnob, or is the default.
void SetKnob(VfView& vf, Knob knob, uint64_t value);
// Knobs of the GPU only, and not kGroupWeight, which is one per group.
uint64_t KnobOf(const PolicyOptions& options, Knob knob);
void SetKnob(PolicyOptions& options, Knob knob, uint64_t value);

}  // namespace vgpud
