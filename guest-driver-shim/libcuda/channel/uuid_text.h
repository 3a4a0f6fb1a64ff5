// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace vgpud::cuda {

// As NVIDIA's tools write the UUID of a device: "GPU-" and the usual groups.
inline std::string UuidText(const uint8_t (&uuid)[16]) {
  char text[48];
  int at = snprintf(text, sizeof text, "GPU-");
  for (int i = 0; i < 16; ++i) {
    at += snprintf(text + at, sizeof text - static_cast<size_t>(at),
                   i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
  }
  return text;
}

}  // namespace vgpud::cuda
