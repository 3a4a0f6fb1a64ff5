// SPDX-License-Identifier: Apache-2.0
// The memory that a VF was promised.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpud::daemon {

struct VfMemory {
  uint64_t vram_bytes = 0;
  uint64_t host_memory_bytes = 0;
  bool operator==(const VfMemory&) const = default;
};
inline VfMemory Smaller(const VfMemory& a, const VfMemory& b) {
  return {std::min(a.vram_bytes, b.vram_bytes), std::min(a.host_memory_bytes, b.host_memory_bytes)};
}
inline VfMemory Larger(const VfMemory& a, const VfMemory& b) {
  return {std::max(a.vram_bytes, b.vram_bytes), std::max(a.host_memory_bytes, b.host_memory_bytes)};
}

}  // namespace vgpud::daemon
