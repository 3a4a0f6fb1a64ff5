// SPDX-License-Identifier: Apache-2.0
// What makes a VF the same one after a restart of vgpud or of the host: all that create and set have said of it, and
// where guests find it. Its text: registry/definition_text.h.
#pragma once

#include <cstdint>
#include <string>

#include "vgpud/model/uuid.h"
#include "vgpud/model/vf_spec.h"

namespace vgpud::daemon {

struct VfDefinition {
  VfSpec spec;  // with view.paused; transient only if it ends with its domain
  Uuid uuid{};
  uint32_t number = 0;           // its place among the VFs, and whose user its processes are
  std::string vfio_user_socket;  // where it was last
};

}  // namespace vgpud::daemon
