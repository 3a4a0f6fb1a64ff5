// SPDX-License-Identifier: Apache-2.0
// How drivers differ in the controls of channels: the one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vgpud::rm {

struct DriverTraits {
  uint32_t from_major;      // the first version that is so
  uint32_t schedule_bytes;  // parameters of GPFIFO_SCHEDULE
  bool disables_channels;   // FIFO_DISABLE_CHANNELS on a GPU whose driver runs on the GPU itself (GSP)
  const char* source;
};
// Of a version like 580.142; of a newer one than the table knows, the newest's.
const DriverTraits& TraitsOf(uint32_t major);

// Of the first line of /proc/driver/nvidia/version, or of a version alone. nullopt: there is none in it.
std::optional<uint32_t> MajorVersion(std::string_view text);

// Of this host's driver; 0: there is none of NVIDIA's.
uint32_t DriverMajor();

}  // namespace vgpud::rm
