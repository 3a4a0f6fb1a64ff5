// SPDX-License-Identifier: Apache-2.0
// Device memory whose size may change while it is in use. A GPU without this has all the memory of its card, and only
// the VF's quota limits what is taken of it.
#pragma once

#include <cstdint>

namespace vgpud {

class VramGrowth {
 public:
  virtual ~VramGrowth() = default;
  // Allocations may take that many bytes from now on, as far as the GPU was made for so many. Fewer than before: what
  // is there stays; the caller has seen to it that no more is in use. Any thread.
  virtual void SetVramBytes(uint64_t bytes) = 0;
};

}  // namespace vgpud
