// SPDX-License-Identifier: Apache-2.0
// All policies and all knobs, each one row: what the command line, the control API, `--dry-run` and the documentation
// know about them. Adding a policy: docs/scheduling.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/policy.h"
#include "sched/refusal.h"

namespace vgpud {

enum class Knob : uint8_t {
  kWeight,
  kSlice,
  kPriority,
  kGroup,
  kGuarantee,
  kLimit,
  kBurst,
  kWakeFirst,
  kBaseSlice,
  kMaxWait,
  kMinSlice,
  kMaxSlice,
  kAveragingFactor,
  kFloorPercent,
  kIdleGrace,
  kAnticipatePercent,
  kAnticipate,
  kGroupWeight,
};
inline constexpr size_t kKnobs = static_cast<size_t>(Knob::kGroupWeight) + 1;

enum class KnobUnit : uint8_t {
  kNumber,
  kMicroseconds,
  kPart,  // of the GPU, in parts of kWhole; people write 0.25
  kPercent,
};

struct KnobRow {
  Knob knob;
  std::string_view name;  // as in the control API and in the configuration
  bool per_vf;            // else one value per GPU (kGroupWeight: per group)
  uint64_t min;
  uint64_t max;
  bool zero_too;  // 0 is allowed although it is below `min`, and means "not set"
  KnobUnit unit;
  std::string_view about;
};
std::span<const KnobRow> Knobs();
const KnobRow& RowOf(Knob knob);

struct PolicyRow {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const PolicyOptions& options);
  uint32_t knobs;  // bit per Knob that it understands
  bool holds;      // understands WhenIdle::kHold
  std::string_view about;
  bool Understands(Knob knob) const { return (knobs >> static_cast<unsigned>(knob) & 1) != 0; }
};
std::span<const PolicyRow> Policies();
inline constexpr std::string_view kDefaultPolicy = "strict";
// Fields beside the knobs.
inline constexpr std::string_view kPolicyField = "policy";
inline constexpr std::string_view kIdleField = "idle";

// Errors name what was asked for and what there is.
Result<const PolicyRow*> FindPolicy(std::string_view name);
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options);

// As errors have it: "0 or 0.001 to 1 of the GPU".
std::string AllowedRange(const KnobRow& row);
// Is `value`, in the unit of the knob's row, within the row's range? The error names knob, value and range.
Checked CheckKnob(Knob knob, uint64_t value);
// Every value, and that they go together. A default is within range by itself, also where it means "not set".
Checked CheckOptions(const PolicyOptions& options);
// `name` is for the error text. A value that `policy` has no use for is an error, unless it is the default.
Checked CheckVf(const PolicyRow& policy, std::string_view name, const VfView& vf);
// A slice by weight, and the turn of the VF's group, must be within the range of slice_us too, whatever a goal for the
// wait makes of the base slice. The error names weight and base slice. `vf` has passed CheckVf.
Checked CheckSlice(std::string_view name, const VfView& vf, const PolicyOptions& options);
// What guarantees ask for and what there is, in parts of one GPU.
struct GuaranteeRoom {
  double asked = 0;
  double available = 1;  // what is left when a switch follows each slice
  Ns slice{0};           // the shortest one of a VF with a guarantee
  bool Fits() const { return asked <= available; }
};
GuaranteeRoom RoomForGuarantees(std::span<const VfView> vfs, const PolicyOptions& options, Ns switch_cost);
// Can all guarantees of `vfs` be kept if each slice costs one switch? Runnable or not, all count.
Checked CheckGuarantees(std::span<const VfView> vfs, const PolicyOptions& options, Ns switch_cost);

}  // namespace vgpud
