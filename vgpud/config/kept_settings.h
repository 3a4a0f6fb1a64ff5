// SPDX-License-Identifier: Apache-2.0
// What was changed live of a GPU's settings (vgpuctl set-gpu), as text for the next vgpud that goes on with its VFs.
// Keys are those of the only GPU, whatever its name. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vgpud/model/settings.h"

namespace vgpud::daemon {

struct LiveSetting {
  std::string key;    // "gpu.base_slice_us", "gpu.group_weight.3"
  std::string value;  // that holds
  std::string told;   // what files and flags said then
  bool operator==(const LiveSetting&) const = default;
};

// What files and flags, whose `values` by key these are, say of the GPU `name`: "gpu.NAME.policy", if there is one,
// counts as "gpu.policy".
std::map<std::string, std::string> ValuesOfGpu(std::map<std::string, std::string> values, std::string_view name);

// A line each, for releases before and after this one.
std::string WriteLive(const std::vector<LiveSetting>& live);
// Lines that are none are left out.
std::vector<LiveSetting> ReadLive(const std::string& text);

struct WithLive {
  GpuSettings settings;
  std::vector<std::string> left_out;  // a line for each that does not hold any more, with the reason
};
// `told` with what was changed live, but for what the files and flags, whose `values` of this GPU these are, say anew:
// they count more. All of it or, if it can't be had together, nothing.
WithLive ApplyLive(const GpuSettings& told, const std::map<std::string, std::string>& values,
                   const std::vector<LiveSetting>& live);

}  // namespace vgpud::daemon
