// SPDX-License-Identifier: Apache-2.0
// attach and detach with a libvirt that knows <hostdev type='vfio-user'>: it is libvirt that plugs devices in and out.
// All: an exit code, after saying why not.
#pragma once

#include "tools/libvirt/native.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/domain/domain.h"

namespace vgpud::tools {

// The domain where it is to be changed; null: not there.
struct NativeTarget {
  const XmlNode* live = nullptr;
  const XmlNode* config = nullptr;
};

// Does this libvirt know the element, for a domain like that? What can't be found out is no.
bool IsNative(const Libvirt& libvirt, const XmlNode& domain);
// A missing name of a VF is chosen: DOMAIN-vgpud0. Attaches it, and makes it before where it has settings and the
// domain runs.
tl::expected<Hostdev, int> AttachNative(const CtlArgs& args, const Domain& domain, const NativeTarget& target,
                                        Hostdev wanted);
// Is there a VF of that name or alias?
bool HasNative(const CtlArgs& args, const XmlNode& domain, const std::string& which);
// Detaches that one; the guest has let it go, and its VF is gone or its owner's again.
tl::expected<void, int> DetachNative(const CtlArgs& args, const Domain& domain, const NativeTarget& target,
                                     const std::string& which);

}  // namespace vgpud::tools
