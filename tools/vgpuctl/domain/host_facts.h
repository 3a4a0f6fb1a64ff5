// SPDX-License-Identifier: Apache-2.0
// What tools/libvirt/lint.h wants to know of this host.
#pragma once

#include "tools/libvirt/lint.h"
#include "tools/vgpuctl/commands.h"

namespace vgpud::tools {

// What can't be found out stays unknown.
HostFacts FindFacts(const CtlArgs& args, const XmlNode& domain);

}  // namespace vgpud::tools
