// SPDX-License-Identifier: Apache-2.0
// What tools/libvirt/lint.h wants to know of this host.
#pragma once

#include <optional>
#include <string>

#include "tools/libvirt/lint.h"
#include "tools/vgpuctl/commands.h"

namespace vgpud::tools {

inline constexpr const char* kDefaultQemu = "/usr/bin/qemu-system-x86_64";
struct QemuFacts {
  std::optional<std::string>
      version;                     // empty: it does not run; nothing: it is not run, as others than root may change it
  std::optional<bool> has_device;  // vfio-user-pci
};
QemuFacts AskQemu(const std::string& program);

// What can't be found out stays unknown.
HostFacts FindFacts(const CtlArgs& args, const XmlNode& domain);

}  // namespace vgpud::tools
