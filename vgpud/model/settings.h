// SPDX-License-Identifier: Apache-2.0
// Everything that is configured, as values: the policy and settings of the GPU, and the knobs of all VFs. Whether a
// change is allowed, what it would change and what follows for the other VFs is asked here before anything is done.
// Pure: no GPU, no threads, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sched/registry.h"
#include "vgpud/model/vf_memory.h"

namespace vgpud::daemon {

// What vgpud starts with, and what a default of the control API stands for.
inline PolicyOptions DefaultOptions() {
  PolicyOptions options;
  options.idle_grace = std::chrono::microseconds{50};
  options.anticipate_percent = 90;
  return options;
}
struct GpuSettings {
  std::string policy{kDefaultPolicy};
  PolicyOptions options = DefaultOptions();
};
struct VfSettings {
  std::string name;
  VfView view;           // whether it is runnable does not matter
  VfMemory memory = {};  // of one that is there
};
struct Settings {
  GpuSettings gpu;
  std::vector<VfSettings> vfs;  // in VF order
};

// A knob and its new value, in the unit of its row.
struct KnobValue {
  Knob knob;
  uint64_t value;
};
// What a client wants to be different. Another weight without a slice ends a fixed slice, or it would have no effect.
struct VfPatch {
  std::vector<KnobValue> knobs;
  std::optional<bool> paused;
  std::optional<uint64_t> vram_bytes = {};
  std::optional<uint64_t> host_memory_bytes = {};
};
struct GpuPatch {
  std::optional<std::string> policy;
  std::optional<WhenIdle> idle;
  std::vector<KnobValue> knobs;
  std::vector<std::pair<uint8_t, uint32_t>> group_weights;
};
// All of one request.
struct SettingsPatch {
  std::optional<GpuPatch> gpu;                              // of the only GPU
  std::vector<std::pair<std::string, VfPatch>> vfs;         // by name, each once
  std::vector<std::pair<std::string, GpuPatch>> gpus = {};  // by name, each once
};
void Apply(const VfPatch& patch, VfView& view);
void Apply(const VfPatch& patch, VfMemory& memory);
void Apply(const GpuPatch& patch, GpuSettings& gpu);
// A line for each setting that `patch` changes without naming it.
std::vector<std::string> Warnings(const SettingsPatch& patch, const Settings& before, const Settings& after);

// A measured switch cost below this is not believed when guarantees are checked.
inline constexpr Ns kLeastSwitchCost{10'000};
// May `after` take the place of `before`? The error is one line with what is wrong, with which VFs, and the next step.
// Guarantees that `before` did not keep either are no obstacle unless `after` makes it worse.
Checked CheckChange(const Settings& before, const Settings& after, Ns switch_cost);
// The field of `patch` that the refusal is about; the first one if it is about none of them.
std::string FieldToBlame(const Refusal& refusal, const SettingsPatch& patch);

// What a VF may expect: its slice when it owes nothing, and its part of the GPU, while all VFs that are not paused have
// work.
struct ExpectedShare {
  Ns slice{0};
  double share = 0;
  Ns wake_bound{0};  // Policy::WakeBound; 0: none
};
// In the order of settings.vfs. The settings have passed CheckChange.
std::vector<ExpectedShare> ExpectedShares(const Settings& settings);

using FieldValue = std::variant<std::monostate, bool, uint64_t, double, std::string>;  // monostate: none
std::string_view NameOf(WhenIdle idle);
// In what unit a client finds `value` of `row`: parts of the GPU as fractions, no group as none.
FieldValue ToField(const KnobRow& row, uint64_t value);

// Numbers that tell the settings of a VF or GPU from others that it had: whoever wants to change what he has seen says
// which it was, and is told when somebody else was there first. The same settings have the same number, also in the
// next vgpud. `of`: whose they are. Never 0, and exact as a number of JSON.
uint64_t RevisionOf(std::string_view of, const VfView& vf, const VfMemory& memory);
uint64_t RevisionOf(std::string_view of, const GpuSettings& gpu);

struct Change {
  std::string vf;  // empty: of a GPU
  std::string field;
  FieldValue old_value;
  FieldValue new_value;
  std::string gpu = {};  // whose it is; empty: there is one only
  bool operator==(const Change&) const = default;
};
struct Difference {
  std::vector<Change> changes;  // what was asked for
  std::vector<Change> effects;  // what follows: slices and shares
};
// A VF that only `after` has counts with a share of 0 before.
Difference Compare(const Settings& before, const Settings& after);

}  // namespace vgpud::daemon
