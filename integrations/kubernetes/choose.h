// SPDX-License-Identifier: Apache-2.0
// Which devices a container should get of those that are free. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace vgpud::kubernetes {

// What kubelet counts: a VF, or one of its replicas.
struct Device {
  std::string id;  // "k8s-quarter-0", of replicas "k8s-quarter-0::1"
  std::string vf;
  std::string gpu;               // on which the VF is; empty: there is one
  std::optional<int> numa_node;  // of that
  bool healthy = false;
  bool operator==(const Device&) const = default;
};

struct Wish {
  std::vector<std::string> available;
  std::vector<std::string> must_include;  // part of `available`
  int size = 0;
};

// `wish.size` of `wish.available`, those of `wish.must_include` first: then VFs that are not in it yet, then GPUs that
// are least in it, then VFs that fewest others share. The order of `devices` decides between equals. Errors:
// invalid_argument, in words.
[[nodiscard]] Result<std::vector<std::string>> Choose(const std::vector<Device>& devices, const Wish& wish);

}  // namespace vgpud::kubernetes
