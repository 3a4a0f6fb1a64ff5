// SPDX-License-Identifier: Apache-2.0
// Where the memory of a module comes from: VRAM that somebody admits, and memory of the guest for managed variables.
#pragma once

#include <cstdint>
#include <functional>

#include "gpu/gpu.h"

namespace vgpud {

class ModuleMemory {
 public:
  virtual ~ModuleMemory() = default;
  // Load calls `admit`, on its thread, before it touches the VRAM that a module takes. False ends the load with
  // kOutOfMemory. What was admitted belongs to the module that Load returns; if it returns none, it is free again.
  virtual void AdmitVram(std::function<bool(uint64_t bytes)> admit) = 0;

  // Runs `write`, which touches memory that its owner may take away, and returns true. False: that memory has gone, and
  // nothing was run. The owner waits for `write`, so it is short.
  using WhileThere = std::function<bool(const std::function<void()>& write)>;
  // The managed variables of the module that the next Load makes lie in [address, address + bytes), which is shared.
  // Fewer bytes than they take: Load answers kInvalidValue. Load writes there within `there` only, at most 1 MiB at a
  // time; when the memory has gone it answers kInvalidValue.
  virtual void PlaceManaged(GpuVa address, uint64_t bytes, WhileThere there) = 0;
};

}  // namespace vgpud
