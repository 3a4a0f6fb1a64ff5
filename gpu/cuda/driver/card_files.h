// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's kernel module says of a card in /proc, and which device files are its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpud::driver {

struct CardFacts {
  std::string uuid;               // "GPU-0a1b2c3d-..."; empty: the module does not tell
  std::optional<uint32_t> minor;  // of /dev/nvidiaN
};

// `address`: "65:00.0", with or without a domain of 4 or 8 digits. `folder` is another one in tests. Nothing where
// there is no such module, or no card at that address.
CardFacts ReadCardFacts(const std::string& address, const std::string& folder = "/proc/driver/nvidia/gpus");

// The device files that a driver opens again and again for the card at `address`: its own, and those of the driver as a
// whole. Those of all cards where the module does not tell which is its own. `of_mig`: those of MIG instances, too;
// which belongs to which instance only NVML tells, and who may open one is told by its mode. `devices`: "/dev" but in
// tests.
std::vector<std::string> DeviceFilesOf(const std::string& address, bool of_mig, const std::string& devices = "/dev",
                                       const std::string& folder = "/proc/driver/nvidia/gpus");

}  // namespace vgpud::driver
