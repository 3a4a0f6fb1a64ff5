// SPDX-License-Identifier: Apache-2.0
// Addresses for guest memory: only inside the guest window (base/jail/rules.h), where the jail lets it be mapped, with
// a gap on both sides of each area, so that no two become one mapping of the kernel's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "base/mapping.h"
#include "base/reach_space.h"

namespace vgpud::exec {

class GuestWindow {
 public:
  // What kernels do not reach: all of the guest window that is in front of KernelReach().
  GuestWindow();
  // Address space in `range`, for areas that begin at multiples of `alignment`.
  GuestWindow(std::span<std::byte> range, uint64_t alignment);

  // Reserves address space; ENOMEM when there is none left. In a build without kFixedAddresses: anywhere.
  [[nodiscard]] Result<Mapping> Reserve(size_t bytes);
  // What was reserved has been let go.
  void Release(const Mapping& mapping);
  // What is reserved from now on begins in the last `parts` - `part` of `parts` equal parts, as long as there is room.
  void BeginAt(uint32_t part, uint32_t parts);

 private:
  uint64_t begin_;
  uint64_t end_;
  uint64_t alignment_;
  uint64_t from_;
  std::map<uint64_t, uint64_t> taken_;  // first address -> end, gap included
};

// Where an executor's GPU has its memory, so that its kernels reach what is mapped in the guest window in front of it.
// Of a build without kFixedAddresses: nowhere, they reach nothing.
ReachSpace KernelReach();

}  // namespace vgpud::exec
