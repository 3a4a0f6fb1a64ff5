// SPDX-License-Identifier: Apache-2.0
// The domain of libvirt that has a VF, as those say who watch libvirt. It is shown, and nothing is decided by it.
#pragma once

#include <string>

namespace vgpud::daemon {

// Name and UUID: both or none.
struct VfDomain {
  std::string name;
  std::string uuid;
  bool ends_vf = false;  // the VF was made for it, and is not made again when its processes have ended
  bool operator==(const VfDomain&) const = default;
};

}  // namespace vgpud::daemon
