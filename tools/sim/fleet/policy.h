// SPDX-License-Identifier: Apache-2.0
// How a fleet is shared out: one row per engine and policy (docs/fleet-simulation.md, "Policies").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace vgpud::tools::fleet {

// Which of the hosts that have room, and which of a host's GPUs.
enum class Choice : uint8_t {
  kFirst,     // the first in order
  kFullest,   // the one with the least left free; the first of those
  kEmptiest,  // the one with the most left free; the first of those
};

struct FleetPolicy {
  std::string_view engine;
  std::string_view name;
  Choice choice;
  bool set_aside;  // the first job that waits for room has a host set aside
  bool whole;      // every job gets whole GPUs
  bool quota;      // no tenant holds more than its quota
  bool night;      // trainings start at night only
};

inline constexpr std::array<FleetPolicy, 10> kFleetPolicies = {{
    {"slurm", "whole", Choice::kFirst, true, true, false, false},
    {"slurm", "pack", Choice::kFirst, true, false, false, false},
    {"slurm", "spread", Choice::kEmptiest, true, false, false, false},
    {"slurm", "quota", Choice::kFirst, true, false, true, false},
    {"slurm", "night", Choice::kFirst, true, false, false, true},
    {"kubernetes", "whole", Choice::kFullest, false, true, false, false},
    {"kubernetes", "pack", Choice::kFullest, false, false, false, false},
    {"kubernetes", "spread", Choice::kEmptiest, false, false, false, false},
    {"kubernetes", "quota", Choice::kFullest, false, false, true, false},
    {"kubernetes", "night", Choice::kFullest, false, false, false, true},
}};

}  // namespace vgpud::tools::fleet
