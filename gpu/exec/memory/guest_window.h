// SPDX-License-Identifier: Apache-2.0
// Addresses for guest memory: only inside the guest window (base/jail/rules.h), where the jail lets it be mapped, with
// a gap on both sides of each area, so that no two become one mapping of the kernel's.
#pragma once

#include <cstdint>
#include <map>

#include "base/mapping.h"

namespace vgpud::exec {

class GuestWindow {
 public:
  // Reserves address space; ENOMEM when there is none left. In a build with a sanitizer, whose own memory may be there,
  // anywhere.
  [[nodiscard]] Result<Mapping> Reserve(size_t bytes);
  // What was reserved has been let go.
  void Release(const Mapping& mapping);

 private:
  std::map<uint64_t, uint64_t> taken_;  // first address -> end, gap included
};

}  // namespace vgpud::exec
