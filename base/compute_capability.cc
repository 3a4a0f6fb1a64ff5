// SPDX-License-Identifier: Apache-2.0
#include "base/compute_capability.h"

#include <fmt/core.h>

namespace vgpud {

Result<const ComputeCapability*> FindComputeCapability(std::string_view name) {
  for (const ComputeCapability& c : kComputeCapabilities)
    if (c.name == name) return &c;
  return Fail(std::errc::invalid_argument,
              fmt::format("the soft GPU can't have compute capability \"{}\"; choose one of {}", name.substr(0, 32),
                          ListComputeCapabilities()));
}

std::string ListComputeCapabilities() {
  std::string list;
  for (const ComputeCapability& c : kComputeCapabilities) list += fmt::format("{}{}", list.empty() ? "" : ", ", c.name);
  return list;
}

std::string CapabilityName(uint32_t number) { return fmt::format("{}.{}", number / 10, number % 10); }

}  // namespace vgpud
