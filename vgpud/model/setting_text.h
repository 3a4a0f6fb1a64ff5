// SPDX-License-Identifier: Apache-2.0
// One setting of a VF or of a GPU as text: how live settings and those of the calendar outlive vgpud. Fields are those
// of the control API, "paused" of a VF, and "group_weight.3" of a GPU; numbers are in the units of the knobs. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vgpud/model/settings.h"

namespace vgpud::daemon {

// Nothing: there is no such setting.
std::optional<std::string> SettingText(const VfView& vf, std::string_view field);
std::optional<std::string> SettingText(const GpuSettings& gpu, std::string_view field);
// Adds the setting to `patch`, which stays as it is when there is no such setting, or it can't be that.
[[nodiscard]] Result<void> PutSetting(std::string_view field, std::string_view text, VfPatch* patch);
[[nodiscard]] Result<void> PutSetting(std::string_view field, std::string_view text, GpuPatch* patch);
// All fields of a GPU.
std::vector<std::string> GpuFields();

}  // namespace vgpud::daemon
