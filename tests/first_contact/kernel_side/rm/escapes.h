// SPDX-License-Identifier: Apache-2.0
// The ioctls of the control file and the cards' files.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/first_contact/kernel_side/rm/machine.h"
#include "tests/first_contact/kernel_side/rm/open_file.h"

namespace vgpud::kernel_side {

struct EscapeCall {
  Machine& machine;
  OpenFiles& files;
  uint64_t file;
  const Caller& caller;
  std::vector<std::byte>& bytes;

  template <class T>
  T& As() const {
    return *reinterpret_cast<T*>(bytes.data());
  }
};

// 0, or an errno; the resource manager's own status is in the call's bytes.
int DoEscape(uint32_t escape, const EscapeCall& call);

}  // namespace vgpud::kernel_side
