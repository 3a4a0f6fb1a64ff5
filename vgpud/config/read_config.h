// SPDX-License-Identifier: Apache-2.0
// What vgpud is told, by configuration files and by its command line; and what is different when it is told again.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vgpud/config/config.h"
#include "vgpud/model/settings.h"

namespace vgpud::daemon {

inline constexpr const char* kSystemConfigFile = "/etc/vgpud/vgpud.toml";

struct Told {
  Config config;
  std::map<std::string, std::string> values;   // of each key of a configuration file: "gpu.base_slice_us" -> "2000"
  std::map<std::string, std::string> origins;  // where each is from: "FILE:LINE", kFromFlag or kFromDefault
};
inline constexpr const char* kFromFlag = "flag";
inline constexpr const char* kFromDefault = "default";

// The files that `command_line` leads to are read now; what it says itself counts more. The error has a line for each
// thing that is wrong.
[[nodiscard]] Result<Told> ReadConfig(const std::vector<std::string>& command_line);

struct ConfigChange {
  std::string key;
  std::string before;
  std::string after;
  // "gpu.base_slice_us 2000 -> 4000"
  std::string Text() const { return key + " " + before + " -> " + after; }
};
// Can the value of `key` change while the daemon runs?
bool TakesEffectNow(std::string_view key);
struct Reload {
  GpuPatch gpu;  // of what can take effect now: the policy and its knobs, as said of no GPU by name
  std::vector<std::pair<std::string, GpuPatch>> gpus;  // of each GPU that was and is served
  std::vector<ConfigChange> now;
  std::vector<ConfigChange> at_restart;  // everything else
};
// What is different between what the files and flags said and what they say. Nothing that somebody else has changed in
// the meantime is touched.
Reload PlanReload(const Told& before, const Told& after);

}  // namespace vgpud::daemon
