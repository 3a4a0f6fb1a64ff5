// SPDX-License-Identifier: Apache-2.0
// The knobs and policies of sched/registry.h as clients of the control API see them: vgpuctl makes its options and its
// help from these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpud::control {

enum class Unit { kNumber, kMicroseconds, kPart, kPercent };

struct KnobInfo {
  std::string field;   // of the JSON: "slice_us"
  std::string option;  // on a command line, where times have a unit of their own: "slice"
  Unit unit;
  bool per_vf;     // else of the GPU
  bool per_group;  // of the GPU, one value per group
  std::string about;
  // What is allowed: in microseconds, in millionths of the GPU, or in percent.
  uint64_t least;
  uint64_t most;
  bool zero_too;  // 0 is allowed although it is less
  // Is it no amount, but on (1) or off (0)?
  bool is_switch() const { return unit == Unit::kNumber && least == 0 && most == 1; }
};
// In the order of their table.
const std::vector<KnobInfo>& Knobs();
// Of the field of that name; nullptr: it is not a knob.
const KnobInfo* FindKnob(const std::string& field);

// One line for all policies: what each is, in a sentence.
std::string AboutPolicies();

}  // namespace vgpud::control
