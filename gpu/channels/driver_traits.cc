// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/driver_traits.h"

#include <cctype>
#include <fstream>
#include <iterator>

namespace vgpud::rm {
namespace {

constexpr DriverTraits kTraits[] = {
    {0, 2, true, "headers of 535 to 570: bEnable, bSkipSubmit"},
    {575, 3, true, "headers of 575.51 to 580.142: bSkipEnable was added"},
};

}  // namespace

const DriverTraits& TraitsOf(uint32_t major) {
  const DriverTraits* best = kTraits;
  for (const DriverTraits& traits : kTraits)
    if (traits.from_major <= major) best = &traits;
  return *best;
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.142  Release Build ...": the first word like 580.142.
std::optional<uint32_t> MajorVersion(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && !std::isspace(static_cast<unsigned char>(text[at - 1]))) continue;
    uint32_t major = 0;
    size_t end = at;
    for (; end < text.size() && end - at < 4 && std::isdigit(static_cast<unsigned char>(text[end])); ++end)
      major = 10 * major + static_cast<uint32_t>(text[end] - '0');
    if (end - at == 3 && end + 1 < text.size() && text[end] == '.' &&
        std::isdigit(static_cast<unsigned char>(text[end + 1])))
      return major;
  }
  return std::nullopt;
}

uint32_t DriverMajor() {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return MajorVersion(text).value_or(0);
}

}  // namespace vgpud::rm
