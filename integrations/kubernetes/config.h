// SPDX-License-Identifier: Apache-2.0
// What the device plugin offers: one file, in TOML, read again when it changes.
//
//   [resource."vgpud.dev/quarter"]
//   profile = "1/4"     # of each VF (vgpuctl profiles)
//   count = 4           # VFs
//   weight = 200        # of each; without it the profile's, or 100
//   max_weight = 400    # what a pod may have by annotation; without it annotations are not looked at
//   user = 107          # who may open its sockets in the container; without it root and the group of vgpud
//   vm = true           # for virtual machines: the container gets the VF as a vfio-user device (docs/kubernetes.md)
//   replicas = 2        # pods that may share one VF; without it 1, and with it no max_weight, no vm and no dra
//   dra = true          # pods get it by a ResourceClaim, not by the name of the resource; then no vm
//   max_slice_us = 4000 # what a claim may ask for; without it claims may not say a slice
//   tenant = "pods"     # whose VFs they are for vgpud, which has limits for them; without it "kubernetes"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::kubernetes {

inline constexpr int kMostReplicas = 64;
inline constexpr int kMostVfsOfResource = 256;
inline constexpr int kMostWeight = 10000;
inline constexpr int kLeastSliceUs = 100, kMostSliceUs = 1000000;

struct Resource {
  std::string name;   // "vgpud.dev/quarter"
  std::string label;  // "quarter": part of the names of its VFs and of its socket
  std::string profile;
  int count = 1;
  int replicas = 1;
  std::optional<int> weight;
  std::optional<int> max_weight;
  std::optional<int> user;
  bool vm = false;
  bool dra = false;
  std::optional<int> max_slice_us;
  std::string tenant = "kubernetes";
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
