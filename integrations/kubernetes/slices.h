// SPDX-License-Identifier: Apache-2.0
// What this node offers to claims, as objects ResourceSlice (resource.k8s.io/v1) of the API server. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "integrations/kubernetes/config.h"
#include "integrations/kubernetes/vfs.h"

namespace vgpud::kubernetes {

struct SliceDevice {
  std::string name;      // of the VF
  std::string resource;  // Resource::label
  std::string profile;
  std::string gpu;
  std::string product;             // of the GPU
  std::string address;             // of the GPU on the bus; empty: it has none
  std::string compute_capability;  // "7.5"; empty: it is not known
  std::optional<int> numa_node;
  uint64_t memory = 0;  // bytes
  bool operator==(const SliceDevice&) const = default;
};

// The VFs of resources with dra that can be used. `gpus`, `profiles`: vgpud's answers to GET /v1/gpus and /v1/profiles.
[[nodiscard]] std::vector<SliceDevice> DevicesOf(const Config& config, const Offer& offer, const std::string& gpus,
                                                 const std::string& profiles);

// One thing to ask the API server for.
struct SliceChange {
  std::string method;  // POST, PUT or DELETE
  std::string path;
  std::string body;
};
struct SliceNode {
  std::string name;
  std::string uid;  // of the Node: with it the slices go
};

// Where our slices of a node are.
[[nodiscard]] std::string SlicesPath(const std::string& node);

// What makes the slices `devices` of those in `list`, the answer to GET SlicesPath; nothing when they are so.
// Errors: protocol_error.
[[nodiscard]] Result<std::vector<SliceChange>> SliceChanges(const std::string& list, const SliceNode& node,
                                                            const std::vector<SliceDevice>& devices);

}  // namespace vgpud::kubernetes
