// SPDX-License-Identifier: Apache-2.0
// What the device plugin offers: one file, in TOML, read again when it changes.
//
//   [resource."vgpud.dev/quarter"]
//   profile = "1/4"     # of each VF (vgpuctl profiles)
//   count = 4           # VFs
//   weight = 200        # of each; without it the profile's, or 100
//   replicas = 2        # pods that may share one VF; without it 1
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::kubernetes {

inline constexpr int kMostReplicas = 64;
inline constexpr int kMostVfsOfResource = 256;

struct Resource {
  std::string name;   // "vgpud.dev/quarter"
  std::string label;  // "quarter": part of the names of its VFs and of its socket
  std::string profile;
  int count = 1;
  int replicas = 1;
  std::optional<int> weight;
  bool operator==(const Resource&) const = default;

  std::string VfName(int number) const;
};

struct Config {
  std::vector<Resource> resources;  // at least one, in the order of their names
  bool operator==(const Config&) const = default;
};

// All VFs of the plugin, and nobody else's, have names that begin with this.
inline constexpr std::string_view kVfPrefix = "k8s-";

// The error says file, line, what is wrong and what is allowed. `path` names the file in it.
[[nodiscard]] Result<Config> ParseConfig(std::string_view text, const std::string& path);
[[nodiscard]] Result<Config> ReadConfig(const std::string& path);

}  // namespace vgpud::kubernetes
