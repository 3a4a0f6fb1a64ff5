// SPDX-License-Identifier: Apache-2.0
// Device memory whose addresses are ours to choose, so that each GPU of a program can have others.
#pragma once

#include <cstdint>

#include "gpu/gpu.h"

namespace vgpud {

class VramPart {
 public:
  virtual ~VramPart() = default;
  // Puts all addresses of device memory into part `part` of VGPU_BUFFER_PARTS, from now on. False: something is in
  // memory already, or the memory does not fit into a part; nothing has changed.
  virtual bool UseVramPart(uint32_t part) = 0;
};

}  // namespace vgpud
