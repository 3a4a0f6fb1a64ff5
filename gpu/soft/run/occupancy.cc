// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/occupancy.h"

#include <algorithm>

#include "gpu/soft/code/special_registers.h"

namespace vgpud::soft {

uint64_t MostResident(const FunctionInfo& function, uint32_t threads, uint32_t dynamic_shared) {
  const uint32_t whole_warps = (threads + kLanes - 1) / kLanes * kLanes;
  const uint64_t registers = uint64_t{(function.registers + 7) / 8 * 8} * whole_warps;
  const uint64_t shared = uint64_t{function.static_shared_bytes} + dynamic_shared;
  uint64_t fit = std::min(kThreadsPerMultiprocessor / whole_warps, kBlocksPerMultiprocessor);
  if (registers != 0) fit = std::min<uint64_t>(fit, kRegistersPerMultiprocessor / registers);
  if (shared != 0) fit = std::min<uint64_t>(fit, kSharedPerMultiprocessor / shared);
  return fit * kMultiprocessors;
}

}  // namespace vgpud::soft
