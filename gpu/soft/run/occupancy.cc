// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/occupancy.h"

#include <algorithm>

#include "gpu/soft/code/register_file.h"
#include "gpu/soft/code/special_registers.h"

namespace vgpud::soft {

uint64_t MostResident(const ComputeCapability& capability, const FunctionInfo& function, uint32_t threads,
                      uint32_t dynamic_shared) {
  const uint32_t whole_warps = WholeWarps(threads);
  const uint64_t registers =
      uint64_t{(function.registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit} * whole_warps;
  const uint64_t shared = uint64_t{function.static_shared_bytes} + dynamic_shared + capability.reserved_shared;
  uint64_t fit = std::min(capability.threads_per_multiprocessor / whole_warps, capability.blocks_per_multiprocessor);
  if (registers != 0) fit = std::min<uint64_t>(fit, kRegistersPerMultiprocessor / registers);
  if (shared != 0) fit = std::min<uint64_t>(fit, capability.shared_per_multiprocessor / shared);
  return fit * kMultiprocessors;
}

}  // namespace vgpud::soft
