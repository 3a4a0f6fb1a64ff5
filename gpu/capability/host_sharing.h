// SPDX-License-Identifier: Apache-2.0
// Memory of the host, which a guest shares with its executor, that kernels reach where it is.
#pragma once

#include <cstddef>
#include <span>

#include "gpu/gpu.h"

namespace vgpud {

// Not while a step runs; another thread may be loading a module.
class HostSharing {
 public:
  virtual ~HostSharing() = default;
  // Kernels, copies and fills reach `memory` at the address that this returns. `memory` begins in ReachSpace::shared()
  // at a multiple of ReachSpace::kAlignment. Sharing it again returns the same address. The file stays the caller's.
  // kNotSupported: kernels can't reach it there.
  virtual GpuResult<GpuVa> Share(std::span<std::byte> memory, const MemoryFile& file) = 0;
  // They reach it no longer. Memory that is not shared stays as it is.
  virtual void Unshare(std::span<std::byte> memory) = 0;
};

}  // namespace vgpud
