// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/open_file.h"

#include <fmt/core.h>

namespace vgpud::kernel_side {

std::vector<std::string> NodeNames(uint32_t cards) {
  std::vector<std::string> names = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"};
  for (uint32_t i = 0; i < cards; ++i) names.push_back(fmt::format("nvidia{}", i));
  return names;
}

}  // namespace vgpud::kernel_side
