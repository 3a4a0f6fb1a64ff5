// SPDX-License-Identifier: Apache-2.0
// A VF that is to be made, as it was typed.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace vgpud::tools {

struct NewVf {
  std::string name;
  std::map<std::string, std::string> knobs;  // by field of the API
  std::string profile;
  std::string tenant;
  std::optional<std::string> vram;
  std::optional<std::string> host_memory;
  std::optional<std::string> owner;  // "alice:ml"
  bool transient = false;
  std::string gpu;
  std::string placement;
  std::optional<unsigned> numa_node;  // of the virtual machine
};

}  // namespace vgpud::tools
