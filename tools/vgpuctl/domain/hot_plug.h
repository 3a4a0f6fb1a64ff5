// SPDX-License-Identifier: Apache-2.0
// Into a running guest and out of it, through QEMU's monitor.
#pragma once

#include "tools/libvirt/hostdev.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/domain/domain.h"

namespace vgpud::tools {

// `hostdev` has its alias and VF. Makes the VF ready, gives it a free root port of the running domain and writes the
// note. An exit code after the reason was said: then all is as it was.
tl::expected<void, int> PlugIn(const CtlArgs& args, const Domain& domain, const XmlNode& live, Hostdev hostdev);
// Waits, at most args.timeout, until the guest has let it go; then the VF is released.
tl::expected<void, int> Unplug(const CtlArgs& args, const Domain& domain, const XmlNode& live,
                               const std::string& which);

}  // namespace vgpud::tools
