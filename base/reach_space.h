// SPDX-License-Identifier: Apache-2.0
// Host addresses through which kernels reach memory: first that of the guest's buffers, then the device's own. One
// place for both, so that one addition leads from any address of a kernel to host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpud {

struct ReachSpace {
  // From the first address to the device's own memory.
  static constexpr uint64_t kBytes = uint64_t{1} << 40;
  // At either end of what is shared: there is never anything.
  static constexpr uint64_t kGuard = uint64_t{8} << 30;
  // A buffer begins at a multiple of this, which is the grain of the map that accesses are checked by.
  static constexpr uint64_t kAlignment = uint64_t{2} << 20;

  // Where the device's own memory has to be; nullptr: anywhere, and kernels reach no memory of the guest's.
  std::byte* device_memory = nullptr;

  // Where buffers have to be mapped for kernels to reach them.
  std::span<std::byte> shared() const {
    if (device_memory == nullptr) return {};
    return {device_memory - kBytes + kGuard, kBytes - 2 * kGuard};
  }
};

}  // namespace vgpud
