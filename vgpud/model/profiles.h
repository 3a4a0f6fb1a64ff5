// SPDX-License-Identifier: Apache-2.0
// Profiles: named sizes of VFs. 1/1, 1/2, 1/4 and 1/8 of the GPU are built in, others are configured. A profile says
// what a new VF has unless it is said otherwise; VFs that are there do not change with it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vgpud/model/settings.h"

namespace vgpud::daemon {

struct Profile {
  std::string name;
  std::optional<uint64_t> vram_bytes;
  std::optional<uint64_t> host_memory_bytes;
  std::vector<KnobValue> knobs;  // of a VF
  bool built_in = false;
};
using Profiles = std::vector<Profile>;

// What 1/1 has of memory where the GPU's size was not said.
inline constexpr uint64_t kUsualGpuVramBytes = uint64_t{8} << 30;
// Parts of a GPU with so much memory. Their weights are as their parts, so that n VFs of 1/n have the GPU for equal
// times; 1/2 has the weight that a VF has without a profile.
Profiles BuiltInProfiles(uint64_t gpu_vram_bytes);
// "small.vram=1GiB", "small.weight=50": one key of one profile of `profiles`, which it is added to if it is not there.
// Keys: vram, host_memory and the knobs of a VF, with their units and ranges. Built-in ones cannot be changed.
[[nodiscard]] Result<void> SetInProfile(Profiles* profiles, std::string_view setting);
std::vector<std::string> ProfileKeys();
// The error names what there is that is near.
[[nodiscard]] Result<const Profile*> FindProfile(const Profiles& profiles, std::string_view name);

}  // namespace vgpud::daemon
